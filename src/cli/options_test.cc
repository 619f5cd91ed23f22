#include "cli/options.h"

#include <gtest/gtest.h>

namespace belljar::cli {
namespace {

struct Taken {
  std::vector<std::string> values;
  bool flag = false;
  std::vector<Option> options{{"--read", "PATH", "",
                               [this](std::string_view value) -> base::Status {
                                 values.emplace_back(value);
                                 return {};
                               }},
                              {"--json", "", "", [this](std::string_view) -> base::Status {
                                 flag = true;
                                 return {};
                               }}};
};

TEST(Options, StopAtTheCommandOrAtTwoHyphens) {
  Taken taken;
  const std::vector<std::string> words{"--read", "/a", "--read=/b=c", "--json", "--", "--read", "x"};
  const auto rest = parse_options(words, taken.options);
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, (std::vector<std::string>{"--read", "x"}));
  EXPECT_EQ(taken.values, (std::vector<std::string>{"/a", "/b=c"}));
  EXPECT_TRUE(taken.flag);

  const std::vector<std::string> bare{"ls", "--json"};
  EXPECT_EQ(*parse_options(bare, taken.options), bare);
}

TEST(Options, RefusalsNameTheOptionAndTheRemedy) {
  Taken taken;
  const auto message = [&](std::vector<std::string> words) {
    return parse_options(words, taken.options).error().message();
  };
  EXPECT_EQ(message({"--reed", "x"}), "read the option '--reed': no such option (did you mean --read?)");
  EXPECT_EQ(message({"-x"}), "read the option '-x': no such option (see --help; put '--' before the command)");
  EXPECT_EQ(message({"--read"}), "read the option '--read': its value is missing (write --read PATH)");
  EXPECT_EQ(message({"--json=1"}), "read the option '--json': it takes no value");
}

}  // namespace
}  // namespace belljar::cli
