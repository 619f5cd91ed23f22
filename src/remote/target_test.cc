#include "remote/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "remote/quote.h"

namespace belljar::remote {
namespace {

using ::testing::HasSubstr;

TargetFacts good() {
  return {"x86_64",
          "6.1.0",
          "/home/me",
          "1000",
          "/home/me/.local/bin:/bin",
          "15000",
          {"sha256sum", "mktemp", "head", "tail", "mv"}};
}

TEST(TargetFacts, AreReadBackWhateverALoginShellPrinted) {
  const auto facts = parse_facts("Welcome!\nend=\nbelljar facts\n" + facts_text(good()) + "bye\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(*facts, good());
  EXPECT_FALSE(parse_facts(""));
  EXPECT_FALSE(parse_facts("\nbelljar facts\narchitecture=x86_64\n"));
}

TEST(TargetFacts, ATargetThatCannotIsRefusedWithTheReason) {
  EXPECT_TRUE(check_facts("t", good(), "x86_64"));
  TargetFacts facts = good();
  facts.architecture = "aarch64";
  EXPECT_THAT(check_facts("t", facts, "x86_64").error().message(), HasSubstr("it is a aarch64"));
  facts = good();
  facts.user_namespaces = "0";
  EXPECT_THAT(check_facts("t", facts, "x86_64").error().message(),
              HasSubstr("user namespaces are off there, refusing"));
  facts.uid = "0";
  EXPECT_TRUE(check_facts("t", facts, "x86_64"));
  facts = good();
  facts.tools.pop_back();
  EXPECT_THAT(check_facts("t", facts, "x86_64").error().message(), HasSubstr("it has no mv, refusing"));
}

TEST(Ssh, IsToldThatNothingMayReachBack) {
  const auto words = ssh_arguments("me@host", "exec x");
  for (const char* option : {"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no",
                             "RemoteCommand=none", "Tunnel=no", "-T", "-a", "-x"}) {
    EXPECT_NE(std::ranges::find(words, option), words.end()) << option;
  }
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()),
            (std::vector<std::string>{"--", "me@host", "exec x"}));
}

TEST(Ssh, KnowsWhatItWouldDoForOthers) {
  const auto configured = [](const std::string& master, const std::string& path, const std::string& persist) {
    return master_of("host far\nport 22\n" + master + path + "sendenv LANG\n" + persist);
  };
  constexpr const char* kPath = "controlpath /home/me/.ssh/master\n";
  EXPECT_EQ(configured("controlmaster auto\n", kPath, "controlpersist no\n"), Master::kForeground);
  EXPECT_EQ(configured("controlmaster true\n", kPath, "controlpersist no\n"), Master::kForeground);
  EXPECT_EQ(configured("controlmaster ask\n", kPath, "controlpersist yes\n"), Master::kPersistent);
  EXPECT_EQ(configured("controlmaster auto\n", kPath, "controlpersist 600\n"), Master::kPersistent);
  EXPECT_EQ(configured("controlmaster auto\n", "", "controlpersist 600\n"), Master::kNone);
  EXPECT_EQ(configured("controlmaster false\n", kPath, "controlpersist no\n"), Master::kNone);
  EXPECT_EQ(configured("", "", ""), Master::kUnknown);
  EXPECT_EQ(master_of(""), Master::kUnknown);
}

// What login shells of any kind read alike: see quote().
TEST(Ssh, TheScriptsHoldNothingThatShellsReadDifferently) {
  for (const std::string_view script : {check_script(), copy_script(), start_script()}) {
    for (const char byte : {'\'', '\\', '\n', '!'}) EXPECT_EQ(script.find(byte), std::string_view::npos) << byte;
  }
}

}  // namespace
}  // namespace belljar::remote
