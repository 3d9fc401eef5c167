"""Texts that tokenizers have stumbled over, and many more made of their parts."""

import random

SCRIPTS = [
    "The quick brown fox jumps over the lazy dog.",
    "Crème brûlée, naïve façade; Ångström, Œuvre, straße, İstanbul, ǅungla.",
    "Привет, мир! Съешь же ещё этих мягких французских булок.",
    "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ",
    "你好，世界。這是一個測試，混合English和数字123。",
    "日本語のテキスト、カタカナ・ひらがな。ﾊﾝｶｸ",
    "안녕하세요, 세계! 한국어 문장입니다.",
    "مرحبا بالعالم، كيف حالك؟ ١٢٣",
    "שלום עולם, מה שלומך? עִבְרִית",
    "नमस्ते दुनिया, यह हिन्दी है। क्षत्रिय",
    "สวัสดีชาวโลก ภาษาไทย",
    "Tiếng Việt có dấu thanh điệu phức tạp",
    "வணக்கம் உலகம் తెలుగు ಕನ್ನಡ മലയാളം",
    "ქართული ენა հայերեն አማርኛ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝕕𝕠𝕦𝕓𝕝𝕖 𝐛𝐨𝐥𝐝 Ｆｕｌｌｗｉｄｔｈ ﬁ ﬂ ① ½ ℃ ㎏",
    "𠮷野家 𪚥 𫝀 𫠠 豈 㐀",
]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "1️⃣", "🧑🏿‍🚀", "☃", "™️"]
MARKS = ["e\u0301", "a\u0308\u0323", "a\u0323\u0308", "o\u0302\u0301", "Z\u0351\u036b\u0343", "\u0301x", "한", "ç", "Å", "ṩ", "\u302e가"]
CONTROLS = [
    "\t", "\n", "\r\n", "\x00", "\x01", "\x0b", "\x0c", "\x1f", "\x7f", "\x85", "\xa0", "\xad",
    "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\u2028", "\u2029", "\u2060", "\u3000",
    "\ufeff", "\ufffd", "\ufffe", "\ue000", "\U000f0000", "\U000e0001", "\u180e", "\u2000", "\u1680",
]  # fmt: skip
SPECIAL = ["[SEP]", "[CLS]", "[MASK]", "[PAD]", "[UNK]", "[mask]", "[ MASK ]", "[[MASK]]", "[MASK", "<s>", "</s>", "<unk>", "##ing", "▁", "▁the"]  # fmt: skip
WORDS = ["don't", "it's", "U.S.A.", "e-mail", "http://a.b/c?d=e&f=g", "3.14", "1,000,000", "C++", "#tag", "@user", "snake_case", "a/b", "...", "--", "—", "…", "“quotes”", "‹›", "$5", "€7", "x²", "`code`", "~", "^", "unaffable", "Donaudampfschifffahrtsgesellschaft"]  # fmt: skip
LONG = ["a" * 100, "a" * 101, "b" * 1000, "é" * 100, "e\u0301" * 60, "ab" * 5000, "." * 300, "你" * 200, "☃" * 500, "\u0301" * 300, "x\u200b" * 200]  # fmt: skip
EDGES = ["", " ", "   ", "\n", "\t \n", " a", "a ", "  a  b  ", "\u3000a\u3000"]


def all_texts(count=640):
    """The parts alone, and sentences of them drawn at random: always the same."""
    parts = SCRIPTS + EMOJI + MARKS + CONTROLS + SPECIAL + WORDS
    texts = EDGES + parts + LONG + [a + b for a, b in zip(SPECIAL, SCRIPTS, strict=False)]
    texts += ["a" + x + "b" for x in CONTROLS + EMOJI + MARKS + SPECIAL]
    words = [word for text in SCRIPTS for word in text.split()] + WORDS
    draw = random.Random(11)
    while len(texts) < count:
        chosen = draw.choices(words, k=draw.randint(1, 12)) + draw.choices(parts, k=draw.randint(0, 4))
        draw.shuffle(chosen)
        texts.append("".join(word + draw.choice(["", " ", " ", " ", "  "]) for word in chosen))
    return texts


def plain_texts():
    """Those that NFKC, the removal of control characters and one kind of space leave as they are."""
    import unicodedata

    def is_plain(text):
        return unicodedata.normalize("NFKC", text) == text and not any(
            (unicodedata.category(c)[0] in "CZ" and c != " ") or c in "\ufffd▁" for c in text
        )

    return [text for text in all_texts() if is_plain(text)]
