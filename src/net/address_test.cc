#include "net/address.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "net/test_address.h"

namespace belljar::net {
namespace {

TEST(IpAddress, ParsesOnlyTheUsualNotation) {
  EXPECT_EQ(testing::ip("192.0.2.7").text(), "192.0.2.7");
  EXPECT_EQ(testing::ip("2001:DB8:0::1").text(), "2001:db8::1");
  for (const char* text : {"", "127.1", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "2130706433", "127.0.0.1.",
                           " 127.0.0.1", "127.0.0.1 ", "256.0.0.1", "[::1]", "fe80::1%eth0", "::1%1", "1.2.3",
                           "1.2.3.4.5", ":::", "example.com", "12345::", "1:2:3:4:5:6:7:8:9"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("127.0.0.1\0x", 11)));
}

TEST(IpAddress, EndpointTextBracketsIpv6) {
  EXPECT_EQ((Endpoint{testing::ip("::1"), 80}.text()), "[::1]:80");
  EXPECT_EQ((Endpoint{testing::ip("192.0.2.1"), 443}.text()), "192.0.2.1:443");
}

// First and last address of each block, and its neighbours outside.
TEST(AddressClass, FollowsTheSpecialPurposeRegistries) {
  using enum AddressClass;
  const std::vector<std::pair<const char*, AddressClass>> cases = {{"0.0.0.0", kUnspecified},
                                                                   {"0.255.255.255", kUnspecified},
                                                                   {"1.0.0.0", kGlobal},
                                                                   {"9.255.255.255", kGlobal},
                                                                   {"10.0.0.0", kPrivate},
                                                                   {"10.255.255.255", kPrivate},
                                                                   {"11.0.0.0", kGlobal},
                                                                   {"100.63.255.255", kGlobal},
                                                                   {"100.64.0.0", kSharedCgnat},
                                                                   {"100.127.255.255", kSharedCgnat},
                                                                   {"100.100.100.200", kSharedCgnat},
                                                                   {"100.128.0.0", kGlobal},
                                                                   {"126.255.255.255", kGlobal},
                                                                   {"127.0.0.0", kLoopback},
                                                                   {"127.255.255.255", kLoopback},
                                                                   {"128.0.0.0", kGlobal},
                                                                   {"168.63.129.15", kGlobal},
                                                                   {"168.63.129.16", kCloudPlatform},
                                                                   {"168.63.129.17", kGlobal},
                                                                   {"169.253.255.255", kGlobal},
                                                                   {"169.254.0.0", kLinkLocal},
                                                                   {"169.254.169.254", kLinkLocal},
                                                                   {"169.254.255.255", kLinkLocal},
                                                                   {"169.255.0.0", kGlobal},
                                                                   {"172.15.255.255", kGlobal},
                                                                   {"172.16.0.0", kPrivate},
                                                                   {"172.31.255.255", kPrivate},
                                                                   {"172.32.0.0", kGlobal},
                                                                   {"191.255.255.255", kGlobal},
                                                                   {"192.0.0.0", kProtocol},
                                                                   {"192.0.0.192", kProtocol},
                                                                   {"192.0.1.0", kGlobal},
                                                                   {"192.0.2.0", kDocumentation},
                                                                   {"192.0.2.255", kDocumentation},
                                                                   {"192.0.3.0", kGlobal},
                                                                   {"192.88.98.255", kGlobal},
                                                                   {"192.88.99.1", kSixToFour},
                                                                   {"192.88.100.0", kGlobal},
                                                                   {"192.167.255.255", kGlobal},
                                                                   {"192.168.0.0", kPrivate},
                                                                   {"192.168.255.255", kPrivate},
                                                                   {"192.169.0.0", kGlobal},
                                                                   {"198.17.255.255", kGlobal},
                                                                   {"198.18.0.0", kBenchmark},
                                                                   {"198.19.255.255", kBenchmark},
                                                                   {"198.20.0.0", kGlobal},
                                                                   {"198.51.99.255", kGlobal},
                                                                   {"198.51.100.0", kDocumentation},
                                                                   {"198.51.101.0", kGlobal},
                                                                   {"203.0.112.255", kGlobal},
                                                                   {"203.0.113.0", kDocumentation},
                                                                   {"203.0.114.0", kGlobal},
                                                                   {"223.255.255.255", kGlobal},
                                                                   {"224.0.0.0", kMulticast},
                                                                   {"239.255.255.255", kMulticast},
                                                                   {"240.0.0.0", kReserved},
                                                                   {"255.255.255.254", kReserved},
                                                                   {"255.255.255.255", kBroadcast},

                                                                   {"::", kUnspecified},
                                                                   {"::1", kLoopback},
                                                                   {"::2", kMapped},
                                                                   {"::127.0.0.1", kMapped},
                                                                   {"::ffff:127.0.0.1", kMapped},
                                                                   {"::ffff:8.8.8.8", kMapped},
                                                                   {"::fffe:8.8.8.8", kReserved},
                                                                   {"64:ff9b::8.8.8.8", kNat64},
                                                                   {"64:ff9b::7f00:1", kNat64},
                                                                   {"64:ff9b:1::1", kNat64},
                                                                   {"64:ff9b:2::1", kReserved},
                                                                   {"100::1", kDiscard},
                                                                   {"100:0:0:1::1", kReserved},
                                                                   {"1fff:ffff::1", kReserved},
                                                                   {"2000::1", kGlobal},
                                                                   {"2001::1", kTeredo},
                                                                   {"2001:0:7f00:1::", kTeredo},
                                                                   {"2001:2::1", kBenchmark},
                                                                   {"2001:10::1", kProtocol},
                                                                   {"2001:1ff:ffff::1", kProtocol},
                                                                   {"2001:200::1", kGlobal},
                                                                   {"2001:4860:4860::8888", kGlobal},
                                                                   {"2001:db7:ffff::1", kGlobal},
                                                                   {"2001:db8::1", kDocumentation},
                                                                   {"2001:db9::1", kGlobal},
                                                                   {"2002:7f00:1::1", kSixToFour},
                                                                   {"2003::1", kGlobal},
                                                                   {"2606:4700::1111", kGlobal},
                                                                   {"3ffe::1", kGlobal},
                                                                   {"3fff::1", kDocumentation},
                                                                   {"3fff:fff::1", kDocumentation},
                                                                   {"3fff:1000::1", kGlobal},
                                                                   {"4000::1", kReserved},
                                                                   {"5f00::1", kReserved},
                                                                   {"fbff::1", kReserved},
                                                                   {"fc00::1", kUniqueLocal},
                                                                   {"fd00:ec2::254", kUniqueLocal},
                                                                   {"fdff:ffff::1", kUniqueLocal},
                                                                   {"fe00::1", kReserved},
                                                                   {"fe80::1", kLinkLocal},
                                                                   {"febf::1", kLinkLocal},
                                                                   {"fec0::1", kSiteLocal},
                                                                   {"feff::1", kSiteLocal},
                                                                   {"ff02::1", kMulticast},
                                                                   {"ff0e::1", kMulticast}};
  for (const auto& [text, expected] : cases) {
    const IpAddress address = testing::ip(text);
    EXPECT_EQ(describe(classify(address)), describe(expected)) << text;
    EXPECT_EQ(is_global(address), expected == kGlobal) << text;
  }
}

}  // namespace
}  // namespace belljar::net
