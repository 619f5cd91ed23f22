#include "net/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "base/temp_tree.h"

namespace belljar::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> texts(const std::vector<IpAddress>& addresses) {
  std::vector<std::string> out;
  for (const IpAddress& address : addresses) out.push_back(address.text());
  return out;
}

TEST(HostsFile, FindsEveryAddressOfAName) {
  constexpr std::string_view kText =
      "# a comment\n127.0.0.1\tlocalhost\n45.45.45.2  one.test  ONE-alias.test. # one.test\r\n"
      "2606:4545::2 one.test\n45.45.45.2 one.test\nnonsense one.test\n45.45.45.3 #one.test\n45.45.45.4 other.test";
  EXPECT_THAT(texts(find_in_hosts(kText, "one.test")), ElementsAre("45.45.45.2", "2606:4545::2"));
  EXPECT_THAT(texts(find_in_hosts(kText, "one-ALIAS.test")), ElementsAre("45.45.45.2"));
  EXPECT_THAT(texts(find_in_hosts(kText, "other.test")), ElementsAre("45.45.45.4"));
  EXPECT_THAT(find_in_hosts(kText, "test"), IsEmpty());
  EXPECT_THAT(find_in_hosts(kText, "45.45.45.4"), IsEmpty());
  EXPECT_THAT(find_in_hosts("", "one.test"), IsEmpty());
}

TEST(HostsFile, SeesWhatIsEditedInPlace) {
  const base::TempTree tree;
  const std::string path = tree.file("hosts", "45.45.45.2 one.test\n");
  const HostsFile hosts(path);
  EXPECT_THAT(texts(hosts.find("one.test")), ElementsAre("45.45.45.2"));
  std::ofstream(path, std::ios::app) << std::string(200'000, '\n') << "45.45.45.3 two.test\n";
  EXPECT_THAT(texts(hosts.find("two.test")), ElementsAre("45.45.45.3"));
  ::unlink(path.c_str());
  EXPECT_THAT(texts(hosts.find("two.test")), ElementsAre("45.45.45.3"));
}

TEST(HostsFile, AMissingOneIsEmpty) {
  EXPECT_THAT(HostsFile("/nonexistent/hosts").find("localhost"), IsEmpty());
}

}  // namespace
}  // namespace belljar::net
