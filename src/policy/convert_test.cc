#include "policy/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/merge.h"
#include "policy/parse.h"

namespace belljar::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ShortForm short_of(std::string_view text, std::string_view name = "p.json") {
  const auto layer = parse_policy(text, name);
  if (!layer) return {layer.error().message(), {}};
  const auto policy = merge(std::vector{built_in_layer(), *layer});
  return policy ? short_form(*policy) : ShortForm{policy.error().message(), {}};
}

TEST(ShortForm, EqualBehaviourIsEqualText) {
  const std::string wanted =
      "{\"mode\":\"jail\",\"network\":\"deny\",\"docker_image\":\"\",\"allow_hosts\":[\"a.test\",\"b.test\"]}\n";
  for (const char* text :
       {R"({"mode": "jail", "network": "deny", "allow_hosts": ["b.test", "A.test."]})",
        R"({"allow_hosts": ["a.test", "b.test"], "network": "deny", "mode": "jail", "docker_image": ""})",
        R"({"isolation": {"allow_hosts": ["b.test", "a.test"]}})"}) {
    const ShortForm form = short_of(text);
    EXPECT_EQ(form.json, wanted);
    EXPECT_THAT(form.lost, IsEmpty());
  }
}

TEST(ShortForm, AnEmptyModeIsNone) {
  EXPECT_EQ(short_of(R"({"mode": ""})").json,
            "{\"mode\":\"\",\"network\":\"allow\",\"docker_image\":\"\",\"allow_hosts\":[]}\n");
}

TEST(ShortForm, ReadsBackAsItself) {
  for (const char* text :
       {R"({"mode": ""})", R"({"mode": "bwrap", "network": "deny", "allow_hosts": ["*.a.test:8443"]})",
        R"({"mode": "docker", "docker_image": "debian:bookworm-slim"})"}) {
    const std::string once = short_of(text).json;
    EXPECT_EQ(short_of(once).json, once);
  }
}

TEST(ShortForm, HostsThatSayTheSameAreWrittenTheSame) {
  const auto hosts = [](std::string_view list) {
    const std::string json =
        short_of("{\"mode\":\"jail\",\"network\":\"deny\",\"allow_hosts\":" + std::string(list) + "}").json;
    const size_t at = json.find("[");
    return at == std::string::npos ? json : json.substr(at, json.find("]") - at + 1);
  };
  EXPECT_EQ(hosts(R"(["a.test:443", "a.test:80"])"), R"(["a.test"])");
  EXPECT_EQ(hosts(R"(["a.test:443", "a.test:80", "a.test:8080"])"), R"(["a.test","a.test:8080"])");
  EXPECT_EQ(hosts(R"(["a.test", "a.test:*"])"), R"(["a.test:*"])");
  EXPECT_EQ(hosts(R"(["*.a.test", "b.a.test", "*.b.a.test:443", "a.test"])"), R"(["*.a.test","a.test"])");
  EXPECT_EQ(hosts(R"(["*.a.test", "b.a.test:22"])"), R"(["*.a.test","b.a.test:22"])");
  const ShortForm table =
      short_of("[isolation]\nallow_hosts = [{ host = \"a.test\", ports = [22, 8080] }]\n", "p.toml");
  EXPECT_THAT(table.json, HasSubstr(R"(["a.test:22","a.test:8080"])"));
}

TEST(ShortForm, TheUsualImageIsNone) {
  EXPECT_EQ(short_of(R"({"mode": "docker", "docker_image": "debian:bookworm-slim"})").json,
            short_of(R"({"mode": "docker"})").json);
  EXPECT_NE(short_of(R"({"mode": "docker", "docker_image": "debian:trixie-slim"})").json,
            short_of(R"({"mode": "docker"})").json);
}

// null or absent: the default of whoever is asked next; {"mode":""} is an opt-out of every one.
TEST(ShortForm, NullIsAbsentAndAnEmptyModeIsSaid) {
  const auto over = [](std::string_view text) {
    PolicyLayer project = *parse_policy(R"({"mode": "bwrap", "network": "deny", "allow_hosts": ["a.test"]})", "p.json");
    const auto launch = parse_policy(text, "launch.json");
    if (!launch) return launch.error().message();
    const auto policy = merge(std::vector{built_in_layer(), std::move(project), *launch});
    return policy ? short_form(*policy).json : policy.error().message();
  };
  const std::string standard = over("{}");
  EXPECT_THAT(standard, HasSubstr("\"bwrap\""));
  for (const char* text : {"null", R"({"isolation": null})"}) EXPECT_EQ(over(text), standard) << text;
  const std::string out = over(R"({"mode": ""})");
  EXPECT_EQ(out, "{\"mode\":\"\",\"network\":\"allow\",\"docker_image\":\"\",\"allow_hosts\":[]}\n");
  for (const char* text : {R"({"mode": "", "network": "allow", "docker_image": "", "allow_hosts": []})",
                           R"({"mode": "", "network": null, "docker_image": null, "allow_hosts": null})",
                           R"({"mode": "none"})", R"({"mode": null, "network": "allow"})"}) {
    EXPECT_EQ(over(text), out) << text;
  }
}

TEST(ShortForm, SaysWhatItCannotCarry) {
  const ShortForm form = short_of("git = \"write\"\n[files]\nread = [\"/srv\"]\n[limits]\nwall = \"1h\"\n", "p.toml");
  EXPECT_THAT(form.lost, ElementsAre("git = \"write\"", "files.read = \"/srv\"", HasSubstr("limits.wall = ")));
}

}  // namespace
}  // namespace belljar::policy
