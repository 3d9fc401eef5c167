// LOCANT_API: what the shared library exports. It is built with hidden visibility, so a public
// function, or a class with members defined in a .cc file, needs this word. The static library
// leaves it empty: a host library that contains locant does not re-export it.
#pragma once

#ifdef LOCANT_SHARED
#define LOCANT_API __attribute__((visibility("default")))
#else
#define LOCANT_API
#endif
