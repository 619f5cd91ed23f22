#include "remote/launch_order.h"

#include "base/pack.h"

namespace belljar::remote {
namespace {

constexpr uint64_t kMaxText = uint64_t{1} << 20U;
constexpr uint64_t kMaxCount = 65536;
constexpr uint64_t kMaxWindow = 65535;

}  // namespace

std::string pack(const LaunchOrder& order) {
  std::string out;
  base::pack_number(out, static_cast<uint64_t>(order.use));
  base::pack_text(out, order.session);
  base::pack_text(out, order.policy);
  base::pack_number(out, order.command.size());
  for (const std::string& word : order.command) base::pack_text(out, word);
  base::pack_text(out, order.folder);
  base::pack_text(out, order.chdir);
  base::pack_number(out, order.environment.size());
  for (const auto& [name, value] : order.environment) {
    base::pack_text(out, name);
    base::pack_text(out, value);
  }
  base::pack_text(out, order.authorities);
  for (const StreamKind kind : order.streams) base::pack_number(out, static_cast<uint64_t>(kind));
  for (const uint64_t number :
       {uint64_t{order.one_stream}, uint64_t{order.umask}, uint64_t{order.link_seconds}, uint64_t{order.rows},
        uint64_t{order.columns}, uint64_t{order.report}, uint64_t{order.json}}) {
    base::pack_number(out, number);
  }
  return out;
}

base::Result<LaunchOrder> unpack_order(std::string_view bytes) {
  base::Unpacker in(bytes);
  LaunchOrder out;
  out.use = static_cast<Use>(in.number(static_cast<uint64_t>(Use::kProbe)));
  out.session = in.text(kMaxText);
  out.policy = in.text(kMaxText);
  for (uint64_t left = in.number(kMaxCount); left > 0 && in.good(); --left) out.command.push_back(in.text(kMaxText));
  out.folder = in.text(kMaxText);
  out.chdir = in.text(kMaxText);
  for (uint64_t left = in.number(kMaxCount); left > 0 && in.good(); --left) {
    std::string name = in.text(kMaxText);
    out.environment[std::move(name)] = in.text(kMaxText);
  }
  out.authorities = in.text(kMaxText);
  for (StreamKind& kind : out.streams) {
    kind = static_cast<StreamKind>(in.number(static_cast<uint64_t>(StreamKind::kClosed)));
  }
  out.one_stream = in.number(1) != 0;
  out.umask = static_cast<uint32_t>(in.number(0777));
  out.link_seconds = static_cast<uint32_t>(in.number(86400));
  out.rows = static_cast<uint16_t>(in.number(kMaxWindow));
  out.columns = static_cast<uint16_t>(in.number(kMaxWindow));
  out.report = in.number(1) != 0;
  out.json = in.number(1) != 0;
  // It becomes a part of names.
  const bool id = out.session.size() == 16 && out.session.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!in.at_end() || !id) return base::refuse("read the launch order", "", "it is not whole, refusing");
  return out;
}

}  // namespace belljar::remote
