#include "linux/tcp_redirect.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>

#include <cerrno>

#include "linux/local_route.h"
#include "linux/netlink_request.h"

namespace belljar::linux {
namespace {

constexpr const char* kTable = "belljar";
constexpr const char* kChain = "out";
// linux/netfilter.h, which cannot stand beside netinet/in.h.
constexpr uint8_t kInet = 1;
constexpr uint8_t kIpv4 = 2;
constexpr uint8_t kIpv6 = 10;
constexpr uint32_t kLocalOut = 3;
constexpr int32_t kDestinationNat = -100;  // NF_IP_PRI_NAT_DST of linux/netfilter_ipv4.h

uint16_t nft(uint16_t message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8U | message);
}

// nf_tables takes changes only between these two (nfnetlink batches).
void batch(NetlinkRequest& request, uint16_t type) {
  request.begin(type, 0, nfgenmsg{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)});
  request.end();
}

void begin(NetlinkRequest& request, uint16_t message, uint16_t flags) {
  request.begin(nft(message), flags, nfgenmsg{kInet, NFNETLINK_V0, 0});
}

void add_chain(NetlinkRequest& request) {
  begin(request, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  request.attribute(NFTA_TABLE_NAME, kTable);
  request.end();
  begin(request, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
  request.attribute(NFTA_CHAIN_TABLE, kTable);
  request.attribute(NFTA_CHAIN_NAME, kChain);
  const size_t hook = request.open(NFTA_CHAIN_HOOK);
  request.attribute_be32(NFTA_HOOK_HOOKNUM, kLocalOut);
  request.attribute_be32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(kDestinationNat));
  request.close(hook);
  request.attribute(NFTA_CHAIN_TYPE, "nat");
  request.end();
}

// One expression of a rule, open between construction and end().
class Expression {
 public:
  Expression(NetlinkRequest& request, const char* name) : request_(request), element_(request.open(NFTA_LIST_ELEM)) {
    request_.attribute(NFTA_EXPR_NAME, name);
    data_ = request_.open(NFTA_EXPR_DATA);
  }
  Expression& number(uint16_t type, uint32_t value) {
    request_.attribute_be32(type, value);
    return *this;
  }
  Expression& value(uint16_t type, const void* data, size_t size) {
    const size_t nest = request_.open(type);
    request_.attribute(NFTA_DATA_VALUE, data, size);
    request_.close(nest);
    return *this;
  }
  void end() {
    request_.close(data_);
    request_.close(element_);
  }

 private:
  NetlinkRequest& request_;
  size_t element_;
  size_t data_ = 0;
};

void expect_meta(NetlinkRequest& request, uint32_t key, uint8_t wanted) {
  Expression(request, "meta").number(NFTA_META_KEY, key).number(NFTA_META_DREG, NFT_REG_1).end();
  Expression(request, "cmp")
      .number(NFTA_CMP_SREG, NFT_REG_1)
      .number(NFTA_CMP_OP, NFT_CMP_EQ)
      .value(NFTA_CMP_DATA, &wanted, sizeof wanted)
      .end();
}

// One of the two ranges: the first 16 bits of a destination, under a mask, at an offset of the network header.
struct Range {
  uint8_t family;
  uint32_t offset;
  uint16_t mask;
  uint16_t prefix;
};

size_t begin_rule(NetlinkRequest& request, uint8_t family, uint16_t flags) {
  begin(request, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
  request.attribute(NFTA_RULE_TABLE, kTable);
  request.attribute(NFTA_RULE_CHAIN, kChain);
  const size_t expressions = request.open(NFTA_RULE_EXPRESSIONS);
  expect_meta(request, NFT_META_NFPROTO, family);
  expect_meta(request, NFT_META_L4PROTO, IPPROTO_TCP);
  return expressions;
}

void end_rule(NetlinkRequest& request, size_t expressions, uint16_t port) {
  const uint16_t target = htons(port);
  Expression(request, "immediate")
      .number(NFTA_IMMEDIATE_DREG, NFT_REG_1)
      .value(NFTA_IMMEDIATE_DATA, &target, sizeof target)
      .end();
  Expression(request, "redir").number(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1).end();
  request.close(expressions);
  request.end();
}

void expect_bytes(NetlinkRequest& request, uint32_t header, uint32_t offset, const void* wanted, uint32_t size) {
  Expression(request, "payload")
      .number(NFTA_PAYLOAD_DREG, NFT_REG_1)
      .number(NFTA_PAYLOAD_BASE, header)
      .number(NFTA_PAYLOAD_OFFSET, offset)
      .number(NFTA_PAYLOAD_LEN, size)
      .end();
  Expression(request, "cmp")
      .number(NFTA_CMP_SREG, NFT_REG_1)
      .number(NFTA_CMP_OP, NFT_CMP_EQ)
      .value(NFTA_CMP_DATA, wanted, size)
      .end();
}

// One port of one address of the loopback. The destination port is the third and fourth byte of a TCP header (RFC 9293,
// section 3.1).
void add_loopback_rule(NetlinkRequest& request, uint8_t family, uint16_t loopback_port, uint16_t port) {
  constexpr uint8_t kV4[] = {127, 0, 0, 1};
  constexpr uint8_t kV6[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const size_t expressions = begin_rule(request, family, 0);
  if (family == kIpv4) {
    expect_bytes(request, NFT_PAYLOAD_NETWORK_HEADER, 16, &kV4[0], sizeof kV4);
  } else {
    expect_bytes(request, NFT_PAYLOAD_NETWORK_HEADER, 24, &kV6[0], sizeof kV6);
  }
  const uint16_t wanted = htons(loopback_port);
  expect_bytes(request, NFT_PAYLOAD_TRANSPORT_HEADER, 2, &wanted, sizeof wanted);
  end_rule(request, expressions, port);
}

void add_rule(NetlinkRequest& request, const Range& range, uint16_t port, uint16_t flags) {
  const size_t expressions = begin_rule(request, range.family, flags);
  Expression(request, "payload")
      .number(NFTA_PAYLOAD_DREG, NFT_REG_1)
      .number(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER)
      .number(NFTA_PAYLOAD_OFFSET, range.offset)
      .number(NFTA_PAYLOAD_LEN, sizeof range.prefix)
      .end();
  const uint16_t mask = htons(range.mask);
  const uint16_t prefix = htons(range.prefix);
  constexpr uint16_t kNothing = 0;
  Expression(request, "bitwise")
      .number(NFTA_BITWISE_SREG, NFT_REG_1)
      .number(NFTA_BITWISE_DREG, NFT_REG_1)
      .number(NFTA_BITWISE_LEN, sizeof mask)
      .value(NFTA_BITWISE_MASK, &mask, sizeof mask)
      .value(NFTA_BITWISE_XOR, &kNothing, sizeof kNothing)
      .end();
  Expression(request, "cmp")
      .number(NFTA_CMP_SREG, NFT_REG_1)
      .number(NFTA_CMP_OP, NFT_CMP_EQ)
      .value(NFTA_CMP_DATA, &prefix, sizeof prefix)
      .end();
  end_rule(request, expressions, port);
}

}  // namespace

int redirect_synthetic_tcp(uint16_t port, uint16_t loopback_port) {
  static_assert(kSyntheticV4Bits <= 16 && kSyntheticV6Bits <= 16);
  // Of the destination in an IPv4 header (RFC 791, section 3.1) and an IPv6 header (RFC 8200, section 3).
  const Range v4{kIpv4, 16, static_cast<uint16_t>(0xffffU << (16 - kSyntheticV4Bits)), kSyntheticV4 >> 16U};
  const Range v6{kIpv6, 24, static_cast<uint16_t>(0xffffU << (16 - kSyntheticV6Bits)), kSyntheticV6};
  NetlinkRequest request;
  batch(request, NFNL_MSG_BATCH_BEGIN);
  add_chain(request);
  add_rule(request, v4, port, 0);
  if (loopback_port != 0) {
    for (const uint8_t family : {kIpv4, kIpv6}) add_loopback_rule(request, family, loopback_port, port);
  }
  // The acknowledgement of the last one comes after the commit of all.
  add_rule(request, v6, port, NLM_F_ACK);
  batch(request, NFNL_MSG_BATCH_END);
  return netlink_talk(NETLINK_NETFILTER, request, 1);
}

}  // namespace belljar::linux
