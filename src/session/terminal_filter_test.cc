#include "session/terminal_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "session/terminal_recogniser.h"

namespace belljar::session {
namespace {

using namespace std::string_literals;

std::string filtered(std::string_view text, TerminalFilter::Options options = {}) {
  std::string out;
  TerminalFilter(options).filter(text, out);
  return out;
}

struct Case {
  const char* name;
  std::string in;
  std::string out;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.name;
}

class Judges : public ::testing::TestWithParam<Case> {};

TEST_P(Judges, WholeAndByteByByte) {
  const Case& each = GetParam();
  EXPECT_EQ(filtered(each.in), each.out);
  TerminalFilter filter{{}};
  std::string out;
  for (const char c : each.in) filter.filter({&c, 1}, out);
  EXPECT_EQ(out, each.out);
  EXPECT_EQ(forbidden_in(out), "");
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

// What passes is written once.
std::vector<Case> with_passing(std::vector<Case> cases,
                               const std::vector<std::pair<const char*, std::string>>& passing) {
  for (const auto& [name, text] : passing) cases.push_back({name, "a" + text + "b", "a" + text + "b"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Text, Judges,
                         ::testing::ValuesIn(with_passing(
                             {
                                 {"Nothing", "", ""},
                                 {"Nul", "a\0b"s, "ab"},
                                 {"Delete",
                                  "a\x7f"
                                  "b",
                                  "ab"},
                                 {"EnquiryWithItsAnswerback",
                                  "a\x05"
                                  "b",
                                  "ab"},
                                 {"FlowControl",
                                  "a\x11\x13"
                                  "b",
                                  "ab"},
                                 {"CancelAndSubstitute",
                                  "a\x18"
                                  "b\x1a"
                                  "c",
                                  "abc"},
                                 {"ZmodemReceive",
                                  "**\x18"
                                  "B00000000000000\r\x8a\x11",
                                  "**B00000000000000\r\xEF\xBF\xBD"},
                                 {"ZmodemCommand",
                                  "rz\r**\x18"
                                  "A\x04",
                                  "rz\r**A"},
                                 {"KermitStart", "\x01 S~/ @-#Y1~N!", " S~/ @-#Y1~N!"},
                                 {"BareControl8Bit",
                                  "a\x9b"
                                  "5nb",
                                  "a\xEF\xBF\xBD"
                                  "5nb"},
                                 {"OverlongEscape", "a\xC0\x9B[5nb", "a\xEF\xBF\xBD\xEF\xBF\xBD[5nb"},
                                 {"OverlongControl",
                                  "a\xE0\x82\x9B"
                                  "5n",
                                  "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                                  "5n"},
                                 {"Surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                                 {"BeyondUnicode", "\xF4\x90\x80\x80",
                                  "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                                 {"CharacterCutByText", "\xE2\x94z", "\xEF\xBF\xBDz"},
                                 {"CharacterCutByEscape", "\xE2\x94\x1b[1mz", "\xEF\xBF\xBD\x1b[1mz"},
                                 {"CharacterCutByCharacter", "\xE2\x94\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},
                                 {"CharacterThatIsNotWhole", "a\xE2\x94", "a"},
                             },
                             {
                                 {"Ascii", " !\"#~0AZaz"},
                                 {"Layout", "\a\b\t\n\v\f\r"},
                                 {"Shifts",
                                  "\x0e"
                                  "q\x0f"},
                                 {"Utf8", "é─✓🙂\u00A0\u07FF\uFFFD\U0010FFFF"},
                                 {"CharactersWithTheBytesOfControls", "\u06DB\u201B\u271D\u0410\u2090"},
                             })),
                         case_name);

INSTANTIATE_TEST_SUITE_P(Escapes, Judges,
                         ::testing::ValuesIn(with_passing(
                             {
                                 {"Identify", "a\x1bZb", "ab"},
                                 {"EscapeEscape", "a\x1b\x1b[1mb", "a\x1b[1mb"},
                                 {"EscapeTwiceBeforeAReport", "a\x1b\x1b[21tb", "ab"},
                                 {"OtherCharacterEncoding", "a\x1b%@b\x1b%Gc", "abc"},
                                 {"AnswersIn8Bit", "a\x1b Gb", "ab"},
                                 {"ScreenMessage", "a\x1b!b", "a"},
                                 {"TitleOfScreen", "a\x1bktitle\x1b\\b", "ab"},
                                 {"TitleOfScreenWithAReportInIt", "a\x1bktitle\x1b[21tb", "ab"},
                                 {"LoneStringTerminator", "a\x1b\\b", "ab"},
                                 {"NulInside", "a\x1b\0[5\0i"s, "a"},
                                 {"NulInsideOfWhatPasses", "a\x1b\0[\0001m"s, "a\x1b[1m"},
                                 {"LineFeedInside", "a\x1b[1\nm", "a\n\x1b[1m"},
                                 {"CancelInside", "a\x1b[2\x18Jb", "aJb"},
                                 {"SubstituteInside", "a\x1b\x1a]52;c;?\ab", "a]52;c;?\ab"},
                                 {"CharacterInside", "a\x1b[2é", "aé"},
                                 {"ManyBetween", "a\x1b((((((Bb", "ab"},
                             },
                             {
                                 {"CursorKeptAndBack", "\x1b\x37\x1b\x38"},
                                 {"Keypad", "\x1b=\x1b>"},
                                 {"LineDrawing", "\x1b(0lqqk\x1b(B"},
                                 {"OtherSets", "\x1b)0\x1b*A\x1b+B"},
                                 {"LineFeeds",
                                  "\x1b"
                                  "D\x1b"
                                  "E\x1bM\x1bH"},
                                 {"FullReset",
                                  "\x1b"
                                  "c"},
                                 {"DoubleSize", "\x1b#3\x1b#4\x1b#5\x1b#6\x1b#8"},
                             })),
                         case_name);

INSTANTIATE_TEST_SUITE_P(Controls, Judges,
                         ::testing::ValuesIn(with_passing(
                             {
                                 {"ReportTitle", "a\x1b[21tb", "ab"},
                                 {"ReportIcon", "a\x1b[20tb", "ab"},
                                 {"ReportPlace", "a\x1b[13tb\x1b[11tc\x1b[19td", "abcd"},
                                 {"MoveAndResize", "a\x1b[3;0;0t\x1b[8;1;1t\x1b[2tb", "ab"},
                                 {"TitleKeptWithMore", "a\x1b[22;0;9tb", "ab"},
                                 {"Print", "a\x1b[i\x1b[5i\x1b[?5i\x1b[4ib", "ab"},
                                 {"ReadTheScreen", "a\x1b[1;1;1;1;9;9*yb", "ab"},
                                 {"ReportParameters", "a\x1b[xb\x1b[1xc", "abc"},
                                 {"ReportTabsAndCursor", "a\x1b[1$wb\x1b[2$uc", "abc"},
                                 {"ReportThirdAttributes", "a\x1b[=cb", "ab"},
                                 {"ReportVersion", "a\x1b[>qb\x1b[>0qc", "abc"},
                                 {"ReportColours", "a\x1b[#Rb\x1b[#|c", "abc"},
                                 {"ReportPrinterKeysMacros", "a\x1b[?15n\x1b[?25n\x1b[?26n\x1b[?62n\x1b[?63nb", "ab"},
                                 {"ReportGraphics", "a\x1b[?2;1Sb", "ab"},
                                 {"Locator", "a\x1b[1;1'z\x1b['|b", "ab"},
                                 {"Vt52", "a\x1b[?2lb", "ab"},
                                 {"Tektronix", "a\x1b[?38hb", "ab"},
                                 {"ModeAmongGoodOnes", "a\x1b[?25;2lb", "ab"},
                                 {"ClipboardMode", "a\x1b[?5522hb", "ab"},
                                 {"LockTheKeyboard", "a\x1b[2hb\x1b[12lc", "abc"},
                                 {"ConformanceLevel", "a\x1b[62;2\"pb", "ab"},
                                 {"HexadecimalTitles", "a\x1b[>0;1tb\x1b[>2Tc", "abc"},
                                 {"FollowTheMouse", "a\x1b[1;2;3;4;5Tb", "ab"},
                                 {"Lamps", "a\x1b[1qb", "ab"},
                                 {"SelfTest", "a\x1b[2;1yb", "ab"},
                                 {"LargeNumber", "a\x1b[100000Ab", "ab"},
                                 {"ManyNumbers", "a\x1b[" + std::string(70, ';') + "Hb", "ab"},
                                 {"VeryLong", "a\x1b[" + std::string(500, '1') + "mb", "ab"},
                                 {"PrefixInside", "a\x1b[1?2hb", "ab"},
                                 {"Control8BitAsUtf8",
                                  "a\xC2\x9B"
                                  "21tb",
                                  "ab"},
                                 {"GoodControl8BitAsUtf8",
                                  "a\xC2\x9B"
                                  "1mb",
                                  "a\x1b[1mb"},
                                 {"NextLineAsUtf8",
                                  "a\xC2\x85"
                                  "b",
                                  "a\x1b"
                                  "Eb"},
                                 {"IdentifyAsUtf8",
                                  "a\xC2\x9A"
                                  "b",
                                  "ab"},
                                 {"Unterminated", "a\x1b[12", "a"},
                             },
                             {
                                 {"Colours", "\x1b[m\x1b[0;1;38;5;200;48;2;1;2;3m\x1b[4:3m\x1b[58:2::1:2:3m"},
                                 {"Cursor", "\x1b[A\x1b[2B\x1b[3C\x1b[4D\x1b[2;3H\x1b[5G\x1b[7d\x1b[2;3f"},
                                 {"Erase", "\x1b[J\x1b[2J\x1b[3J\x1b[K\x1b[1K\x1b[?2J\x1b[4X"},
                                 {"Edit", "\x1b[@\x1b[L\x1b[M\x1b[P\x1b[S\x1b[T\x1b[3b\x1b[4h\x1b[4l"},
                                 {"Margins", "\x1b[2;20r\x1b[r\x1b[?69h\x1b[2;9s\x1b[s\x1b[u"},
                                 {"Modes",
                                  "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000;1002;1006h\x1b[?2026h\x1b[?2031h\x1b[?7l"},
                                 {"WhoAreYou", "\x1b[c\x1b[0c\x1b[>c\x1b[>0c"},
                                 {"WhereIsTheCursor", "\x1b[6n\x1b[?6n\x1b[5n\x1b[?996n"},
                                 {"WhichModes", "\x1b[?2026$p\x1b[4$p"},
                                 {"WhichSize", "\x1b[14t\x1b[16t\x1b[18t"},
                                 {"TitleKeptAndBack", "\x1b[22;0t\x1b[23;0t\x1b[22t"},
                                 {"Keyboard", "\x1b[?u\x1b[>1u\x1b[<u\x1b[<2u\x1b[=5;1u"},
                                 {"ModifiedKeys", "\x1b[>4;2m\x1b[>4m\x1b[>m\x1b[>4n\x1b[?4m"},
                                 {"CursorStyle", "\x1b[5 q\x1b[ q"},
                                 {"SoftReset", "\x1b[!p"},
                             })),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    Strings, Judges,
    ::testing::ValuesIn(with_passing(
        {
            {"ClipboardRead", "a\x1b]52;c;?\ab", "ab"},
            {"ClipboardReadByStringTerminator", "a\x1b]52;c;?\x1b\\b", "ab"},
            {"ClipboardReadAsUtf8Controls",
             "a\xC2\x9D"
             "52;c;?\xC2\x9C"
             "b",
             "ab"},
            {"ClipboardReadWithNul", "a\x1b]5\0002;c;?\ab"s, "ab"},
            {"ClipboardReadWithZeros", "a\x1b]052;c;?\ab", "ab"},
            {"ClipboardWrite", "a\x1b]52;c;aGk=\ab", "ab"},
            {"PassThroughTmux", "a\x1bPtmux;\x1b\x1b]52;c;?\a\x1b\\b", "ab"},
            {"PassThroughScreen", "a\x1bP\x1b]52;c;?\a\x1b\\b", "ab"},
            {"RequestSetting", "a\x1bP$qm\x1b\\b", "ab"},
            {"RequestCapability", "a\x1bP+q544e\x1b\\b", "ab"},
            {"DefineKeys", "a\x1bP0;1|17/0a\x1b\\b", "ab"},
            {"Sixel", "a\x1bPq#0;2;0;0;0#0~~@@\n-~\x1b\\b", "ab"},
            {"KittyGraphics", "a\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\b", "ab"},
            {"PrivacyAndStart", "a\x1b^x\x1b\\b\x1bXy\x1b\\c", "abc"},
            {"ItermFile", "a\x1b]1337;File=inline=1:AAAA\ab", "ab"},
            {"ItermOthers", "a\x1b]1337;ReportVariable=eA==\a\x1b]1337;RequestUpload=format=tgz\ab", "ab"},
            {"KittyTransfer", "a\x1b]5113;ac=send;id=x\x1b\\b", "ab"},
            {"KittyClipboard", "a\x1b]5522;type=read\x1b\\b", "ab"},
            {"ConEmuRuns", "a\x1b]9;7;cmd\ab\x1b]9;6;macro\ac", "abc"},
            {"Notifications", "a\x1b]9;hi\a\x1b]777;notify;a;b\a\x1b]99;;x\x1b\\b", "ab"},
            {"Palette", "a\x1b]4;1;?\ab\x1b]4;1;#fff\ac", "abc"},
            {"SetGround", "a\x1b]11;#000\ab\x1b]10;#000\ac", "abc"},
            {"CursorColourAsked", "a\x1b]12;?\ab", "ab"},
            {"Font", "a\x1b]50;?\ab", "ab"},
            {"Folder", "a\x1b]7;file://h/x\ab", "ab"},
            {"EditorCall", "a\x1b]51;[\"call\",\"x\"]\ab", "ab"},
            {"ShellMarks", "a\x1b]133;A\ab\x1b]633;E;x\ac", "abc"},
            {"ConsolePalette", "a\x1b]P0112233b\x1b]Rc", "abc"},
            {"SunTitle", "a\x1b]lx\x1b\\b", "ab"},
            {"NoNumber", "a\x1b]\ab\x1b];x\ac", "abc"},
            {"TitleWithoutText", "a\x1b]2\ab", "ab"},
            {"TitleWithControls", "\x1b]0;a\nb\tc\x07", "\x1b]0;abc\x07"},
            {"TitleWithC1",
             "\x1b]0;a\xC2\x9B"
             "1mb",
             "\x1b[1mb"},
            {"TitleThatIsLong", "\x1b]2;" + std::string(1000, 'x') + "\a", "\x1b]2;" + std::string(255, 'x') + "\a"},
            {"TitleCutBetweenCharacters", "\x1b]2;" + std::string(254, 'x') + "é\a",
             "\x1b]2;" + std::string(254, 'x') + "\a"},
            {"TitleNotUtf8", "\x1b]2;\xFFx\a", "\x1b]2;\xEF\xBF\xBDx\a"},
            {"StringCutByAnother", "a\x1b]2;x\x1b]52;c;?\ab", "ab"},
            {"StringCutByEscape", "a\x1b]2;x\x1b[1mb", "a\x1b[1mb"},
            {"StringCutByCancel",
             "a\x1b]2;x\x18"
             "b",
             "ab"},
            {"StringCutByCharacter",
             "a\x1b]2;x\x1b"
             "éb",
             "aéb"},
            {"StringUnterminated", "a\x1b]2;x", "a"},
            {"StringOverlong", "a\x1b]8;;http://x/" + std::string(5000, 'y') + "\ab", "ab"},
            {"LinkToAFile", "\x1b]8;;file:///etc/passwd\at\x1b]8;;\a", "t\x1b]8;;\a"},
            {"LinkToAProgram", "\x1b]8;;vscode://x\at", "t"},
            {"LinkInCapitals", "\x1b]8;;JAVASCRIPT:x\at", "t"},
            {"LinkWithSpace", "\x1b]8;;http://a b\at", "t"},
            {"LinkNotAscii", "\x1b]8;;http://é/\at", "t"},
            {"LinkWithControl", "\x1b]8;;http://a\nb\at", "\x1b]8;;http://ab\at"},
            {"LinkWithoutParts", "\x1b]8;http://a\at", "t"},
            {"LinkWithStrangeParameter", "\x1b]8;id=%;http://a\at", "t"},
        },
        {
            {"Titles", "\x1b]0;one\a\x1b]1;two\x1b\\\x1b]2;✳ three;é\a"},
            {"Links", "\x1b]8;;https://example.com/a?b=c;d\x1b\\text\x1b]8;;\x1b\\\x1b]8;id=1:x=y;http://h/\a"},
            {"ColoursAsked", "\x1b]10;?\x1b\\\x1b]11;?\a"},
            {"CursorColour", "\x1b]12;#ff0000\a\x1b]112\a\x1b]12;rgb:00/11/22\x1b\\"},
            {"Progress", "\x1b]9;4;1;50\a\x1b]9;4;0\a"},
        })),
    case_name);

TEST(TerminalFilter, WritesTheClipboardWhenItMay) {
  const TerminalFilter::Options may{.clipboard_write = true};
  const std::string large = "\x1b]52;c;" + std::string(100000, 'A') + "\a";
  for (const std::string& text : {"\x1b]52;c;aGk=\a"s, "\x1b]52;;aGk=\x1b\\"s, "\x1b]52;p;\a"s, large}) {
    EXPECT_EQ(filtered(text, may), text);
  }
  for (const std::string& text : {"\x1b]52;c;?\a"s, "\x1b]52;c;aG k=\a"s, "\x1b]52;x;aGk=\a"s, "\x1b]52;c\a"s,
                                  "\x1b]52;c;a?\a"s, "\x1b]52;c;" + std::string(200000, 'A') + "\a"}) {
    EXPECT_EQ(filtered(text, may), "");
  }
}

TEST(TerminalFilter, TakesControlsInEightBitsWhereTheTerminalDoes) {
  const TerminalFilter::Options latin{.utf8 = false};
  EXPECT_EQ(filtered("caf\xE9 \x9b"
                     "21tx",
                     latin),
            "caf\xE9 x");
  EXPECT_EQ(filtered("\x9b"
                     "1mx",
                     latin),
            "\x1b[1mx");
  EXPECT_EQ(filtered("\x9d"
                     "52;c;?\x9cx",
                     latin),
            "x");
  EXPECT_EQ(filtered("\x90"
                     "tmux;x\x9cy\x85",
                     latin),
            "y\x1b"
            "E");
  // A character of UTF-8 whose second byte is one.
  EXPECT_EQ(filtered("\xC3\x9B"
                     "21tx",
                     latin),
            "\xC3x");
}

TEST(TerminalFilter, GivesUpAStringThatDoesNotEnd) {
  std::string out;
  TerminalFilter filter{{}};
  filter.filter("\x1b_G", out);
  for (int i = 0; i < 5 * 64; ++i) filter.filter(std::string(16384, 'x'), out);
  EXPECT_GT(out.size(), 0U);
  out.clear();
  filter.filter("text", out);
  EXPECT_EQ(out, "text");
}

TEST(TerminalFilter, EndsWhatWasLeftOn) {
  const auto closing = [](std::string_view text) {
    TerminalFilter filter{{}};
    std::string out;
    filter.filter(text, out);
    out.clear();
    filter.close(out);
    EXPECT_EQ(forbidden_in(out), "");
    return out;
  };
  EXPECT_EQ(closing("text\r\n\x1b[1mbold\x1b[0m\x1b[H\x1b]0;t\a"), "");
  EXPECT_EQ(closing("\x1b[?1049h\x1b[?25l\x1b[?2004h"), "\x1b[?25h\x1b[?1049l\x1b[?2004l");
  EXPECT_EQ(closing("\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l"), "");
  EXPECT_EQ(closing("\x1b[?7l\x1b[?1002;1006h"), "\x1b[?7h\x1b[?1002l\x1b[?1006l");
  EXPECT_EQ(closing("\x1b[>1u\x1b[>3u\x1b[<u"), "\x1b[<1u");
  // Each screen has a keyboard of its own.
  EXPECT_EQ(closing("\x1b[?1049h\x1b[>1u"), "\x1b[<1u\x1b[?1049l");
  EXPECT_EQ(closing("\x1b[>1u\x1b[=3u\x1b[?1049h"), "\x1b[?1049l\x1b[=0u\x1b[<1u");
  EXPECT_EQ(closing("\x1b[?47h\x1b[>1u\x1b[?47l"), "\x1b[?1049h\x1b[<1u\x1b[?1049l");
  EXPECT_EQ(closing("\x1b[?1049h\x1b[>1u\x1b[?1049l\x1b[>1u\x1b[<u\x1b[?1049h\x1b[<u\x1b[?1049l"), "");
  EXPECT_EQ(closing("\x1b[>4;2m"), "\x1b[>4;0m");
  EXPECT_EQ(closing("\x1b(0\x0e\x1b[31m\x1b[4h\x1b="), "\x1b[4l\x1b>\x0f\x1b(B\x1b[0m");
  EXPECT_EQ(closing("\x1b[2;9r"), "\x1b\x37\x1b[r\x1b\x38");
  EXPECT_EQ(closing("\x1b]8;;http://x/;\a"), "\x1b]8;;\x1b\\");
  EXPECT_EQ(closing("\x1b]12;red\a\x1b[6 q\x1b]9;4;3\a"), "\x1b]9;4;0\x1b\\\x1b[0 q\x1b]112\x1b\\");
  EXPECT_EQ(closing("\x1b[?1049h\x1b[?25l\x1b"
                    "c"),
            "");
  EXPECT_EQ(closing("\x1b]2;unfinished"), "");
}

// Pieces that mean something, so that what is drawn meets the rules.
rc::Gen<std::string> piece() {
  static const std::vector<std::string> kPieces = {
      "\x1b",   "\x1b[", "\x1b]",        "\x1bP",    "\x1b_",     "\x1b\\",   "\a",           "\x9b",     "\x9d",
      "\x9c",   "\xC2",  "\xC2\x9B",     "\xC2\x9D", "\xC2\x9C",  "\xE2\x94", "\xE2\x94\x80", "\xF0\x9F", "\xC0\x9B",
      "0;",     "2;",    "8;;http://x/", "52;c;?",   "52;c;AAAA", "21t",      "6n",           "1m",       "?25l",
      "?1049h", ">1u",   "5i",           "c",        "k",         "%@",       "(0",           "tmux;",    "text",
      "\n",     "\x18",  "\x1a",         "\x05",     "\x7f"};
  const auto any_byte = rc::gen::map(rc::gen::arbitrary<char>(), [](char c) { return std::string(1, c); });
  return rc::gen::oneOf(rc::gen::elementOf(kPieces), any_byte,
                        rc::gen::map(rc::gen::inRange(0, 32), [](int n) { return std::string(1, char(n)); }));
}

rc::Gen<std::string> stream() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece()),
                      [](const std::vector<std::string>& pieces) {
                        std::string out;
                        for (const std::string& each : pieces) out += each;
                        return out;
                      });
}

TEST(TerminalFilter, LetsNothingForbiddenThrough) {
  const bool holds = rc::check("whatever is written", [] {
    const std::string text = *stream();
    const TerminalFilter::Options options{.clipboard_write = false, .utf8 = true};
    TerminalFilter filter(options);
    std::string out;
    filter.filter(text, out);
    filter.close(out);
    RC_ASSERT(forbidden_in(out) == "");
    RC_ASSERT(out.size() <= 3 * text.size() + 1024);
    // What has passed once passes again, the same.
    RC_ASSERT(filtered(out, options) == out);
  });
  EXPECT_TRUE(holds);
}

TEST(TerminalFilter, DoesTheSameHoweverItIsCut) {
  const bool holds = rc::check("in whatever parts", [] {
    const std::string text = *stream();
    const bool utf8 = *rc::gen::arbitrary<bool>();
    const bool clipboard = *rc::gen::arbitrary<bool>();
    TerminalFilter filter({.clipboard_write = clipboard, .utf8 = utf8});
    std::string parts;
    for (size_t at = 0; at < text.size();) {
      const auto size = *rc::gen::inRange<size_t>(1, 6);
      filter.filter(std::string_view(text).substr(at, size), parts);
      at += size;
    }
    RC_ASSERT(parts == filtered(text, {.clipboard_write = clipboard, .utf8 = utf8}));
  });
  EXPECT_TRUE(holds);
}

TEST(TerminalFilter, TheRecogniserSeesWhatIsForbidden) {
  for (const std::string& text : {"\x1b]52;c;?\a"s, "\x1b[21t"s, "\x1bPx\x1b\\"s,
                                  "\xC2\x9B"
                                  "1m"s,
                                  "\x9b"
                                  "1m"s,
                                  "\x05"s, "\x1b"s, "\x1b[1"s, "\x1b]0;a\nb\a"s, "\x1b]8;;file:///\a"s, "\x1b[?2l"s,
                                  "\x18"s, "\x1b%@"s, "\x1b]0;x"s}) {
    EXPECT_NE(forbidden_in("good" + text), "");
  }
  EXPECT_EQ(forbidden_in("good é \x1b[1m\x1b]0;é\a\x1b]8;;\x1b\\\r\n"), "");
}

}  // namespace
}  // namespace belljar::session
