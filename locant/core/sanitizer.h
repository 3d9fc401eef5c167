// Whether AddressSanitizer watches this program: LOCANT_WATCHED is then 1, else 0.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define LOCANT_WATCHED 1
#elif defined(__has_feature)  // clang's way to tell
#define LOCANT_WATCHED __has_feature(address_sanitizer)
#else
#define LOCANT_WATCHED 0
#endif
