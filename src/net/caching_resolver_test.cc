#include "net/caching_resolver.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net/test_address.h"

namespace belljar::net {
namespace {

// Answers when the test says so.
struct Manual final : Resolver {
  Id resolve(const std::string& host, Callback done) override {
    asked.push_back(host);
    waiting[++last] = {host, std::move(done)};
    return last;
  }
  void cancel(Id id) override { waiting.erase(id); }

  void answer(const std::string& host, std::chrono::seconds ttl, ResolveStatus status = ResolveStatus::kOk) {
    const Resolution resolution{status, {}, {testing::ip("192.0.2.7")}, ttl};
    for (auto at = waiting.begin(); at != waiting.end();) {
      if (at->second.first != host) {
        ++at;
        continue;
      }
      const Callback done = std::move(at->second.second);
      at = waiting.erase(at);
      done(resolution);
    }
  }

  std::vector<std::string> asked;
  std::map<Id, std::pair<std::string, Callback>> waiting;
  Id last = 0;
};

class CachingResolverTest : public ::testing::Test {
 protected:
  Resolver::Id ask(const std::string& host) {
    return cache.resolve(host, [this](const Resolution& resolution) {
      ++answers;
      EXPECT_EQ(resolution.addresses.size(), 1U);
    });
  }
  Manual* inner = new Manual;
  CachingResolver cache{std::unique_ptr<Resolver>(inner)};
  int answers = 0;
};

TEST_F(CachingResolverTest, KeepsAGoodAnswerThatMayBeKept) {
  EXPECT_EQ(cache.at_hand("a.example"), nullptr);
  ask("a.example");
  EXPECT_EQ(answers, 0);
  inner->answer("a.example", std::chrono::seconds(300));
  EXPECT_EQ(answers, 1);
  ASSERT_NE(cache.at_hand("a.example"), nullptr);
  EXPECT_EQ(cache.at_hand("a.example")->addresses.front(), testing::ip("192.0.2.7"));
  EXPECT_EQ(cache.at_hand("b.example"), nullptr);
}

TEST_F(CachingResolverTest, KeepsNeitherFailuresNorWhatHasNoTime) {
  ask("a.example");
  inner->answer("a.example", std::chrono::seconds(0));
  EXPECT_EQ(cache.at_hand("a.example"), nullptr);
  ask("a.example");
  inner->answer("a.example", std::chrono::seconds(300), ResolveStatus::kFailed);
  EXPECT_EQ(cache.at_hand("a.example"), nullptr);
  EXPECT_EQ(inner->asked.size(), 2U);
}

TEST_F(CachingResolverTest, OneLookupServesAllWhoWait) {
  ask("a.example");
  const auto second = ask("a.example");
  ask("a.example");
  EXPECT_EQ(inner->asked.size(), 1U);
  cache.cancel(second);
  inner->answer("a.example", std::chrono::seconds(1));
  EXPECT_EQ(answers, 2);
}

TEST_F(CachingResolverTest, TheLastToCancelEndsTheLookup) {
  const auto first = ask("a.example");
  const auto second = ask("a.example");
  cache.cancel(first);
  EXPECT_EQ(inner->waiting.size(), 1U);
  cache.cancel(second);
  EXPECT_TRUE(inner->waiting.empty());
  cache.cancel(second);
  EXPECT_EQ(answers, 0);
}

TEST_F(CachingResolverTest, IsBounded) {
  for (size_t i = 0; i < CachingResolver::kMost + 10; ++i) {
    ask("h" + std::to_string(i));
    inner->answer("h" + std::to_string(i), std::chrono::seconds(300));
  }
  size_t known = 0;
  for (size_t i = 0; i < CachingResolver::kMost + 10; ++i) {
    known += cache.at_hand("h" + std::to_string(i)) != nullptr ? 1U : 0U;
  }
  EXPECT_EQ(known, CachingResolver::kMost);
}

}  // namespace
}  // namespace belljar::net
