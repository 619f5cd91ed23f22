// For tests: says what in a text a terminal must not get. Written from docs/terminal.md and apart from the filter, as
// regular expressions over a whole text, so that one mistake is not made twice.
#pragma once

#include <regex>
#include <string>
#include <string_view>

namespace belljar::session {

// The text from the first thing on that must not be there, or an empty one. For UTF-8 terminals whose clipboard may not
// be written.
inline std::string forbidden_in(std::string_view text) {
  static const std::regex kSequence(
      "\x1b(?:"
      "[78=>DEHMc]|[()*+][0-~]|#[34568]"
      "|\\[[0-9;:]*m"
      "|\\[[0-9]{0,5}(?:;[0-9]{0,5})?[@A-HJ-MPSXZ`abd-grsu]"
      "|\\[[0-9]{0,5}T"
      "|\\[\\??[0-9]{0,5}[IJK]"
      "|\\[(?:0*[56]|\\?0*6|\\?0*996)n|\\[>?0*c|\\[0*4[hl]|\\[0*(?:14|16|18)t|\\[0*2[23](?:;0*[012]?)?t"
      "|\\[\\?(?:0*(?:1|3|4|5|6|7|8|9|12|25|45|47|66|69|100[0234567]|101[56]|103[4569]|1045|104[789]|2004|202[67]|2031|"
      "2048)"
      "(?:;|(?=[hl])))+[hl]"
      "|\\[\\?u|\\[[<>][0-9]{0,5}u|\\[=[0-9]{0,5}(?:;[0-9]{0,5})?u"
      "|\\[>(?:0*4?(?:;[0-9]{0,5})?)m|\\[>0*4n|\\[\\?0*4m"
      "|\\[[0-9]{0,5} q|\\[!p|\\[\\??[0-9]{0,5}\\$p"
      "|\\](?:[012];[^\\x00-\\x1f\\x7f]{0,255}|1[01];\\?|12;[0-9A-Za-z#:/]{1,32}|112;?|9;4;[0-9;]{0,5}"
      "|8;[0-9A-Za-z=:._-]*;(?:https?://[!-~]*)?)(?:\a|\x1b\\\\)"
      ")",
      std::regex::ECMAScript | std::regex::optimize);
  static const std::regex kText(
      "[\\x07-\\x0f\\x20-\\x7e]|[\xC2][\xA0-\xBF]|[\xC3-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]"
      "|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}"
      "|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2}",
      std::regex::ECMAScript | std::regex::optimize);
  for (auto at = text.begin(); at != text.end();) {
    std::match_results<std::string_view::const_iterator> found;
    const std::regex& expected = *at == '\x1b' ? kSequence : kText;
    if (!std::regex_search(at, text.end(), found, expected, std::regex_constants::match_continuous)) {
      return {at, text.end()};
    }
    at = found[0].second;
  }
  return {};
}

}  // namespace belljar::session
