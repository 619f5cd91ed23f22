#include "session/marker.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/io.h"
#include "base/pack.h"
#include "base/text.h"

namespace belljar::session {
namespace {

// Changes with the layout. pid and start time follow it, at an offset that does not move.
constexpr std::string_view kMagic = "belljar pending session, layout 1\n";
constexpr uint64_t kMostText = 1U << 20U;
constexpr uint64_t kMostWords = 100'000;
constexpr uint64_t kMostWorks = 64;

void pack_list(std::string& out, const std::vector<std::string>& list) {
  base::pack_number(out, list.size());
  for (const std::string& text : list) base::pack_text(out, text);
}

std::vector<std::string> unpack_list(base::Unpacker& in) {
  std::vector<std::string> out;
  for (uint64_t n = in.number(kMostWords); n > 0 && in.good(); --n) out.push_back(in.text(kMostText));
  return out;
}

}  // namespace

std::string encode(const Marker& marker) {
  std::string out(kMagic);
  base::pack_number(out, static_cast<uint64_t>(marker.guest));
  base::pack_number(out, marker.guest_started);
  base::pack_text(out, marker.session);
  base::pack_text(out, marker.started);
  base::pack_number(out, static_cast<uint64_t>(marker.plan.mode));
  base::pack_number(out, static_cast<uint64_t>(marker.plan.network));
  base::pack_text(out, marker.plan.work_folder);
  base::pack_text(out, marker.plan.agent);
  pack_list(out, marker.plan.command);
  pack_list(out, marker.plan.weakenings);
  base::pack_number(out, marker.works.size());
  for (const workspace::Work& work : marker.works) {
    base::pack_text(out, work.name);
    base::pack_text(out, work.record);
    base::pack_number(out, work.always ? 1 : 0);
  }
  return out;
}

base::Result<Marker> decode_marker(std::string_view bytes) {
  constexpr std::string_view kOperation = "read the marker of a session";
  if (!bytes.starts_with(kMagic)) {
    return base::refuse(kOperation, "", "it is not one of this version", "let the version that made it recover it");
  }
  base::Unpacker in(bytes.substr(kMagic.size()));
  Marker out;
  out.guest = static_cast<pid_t>(in.number(INT32_MAX));
  out.guest_started = in.number();
  out.session = in.text(kMostText);
  out.started = in.text(kMostText);
  out.plan.mode = static_cast<policy::Mode>(in.number(static_cast<uint64_t>(policy::Mode::kDocker)));
  out.plan.network = static_cast<policy::Network>(in.number(static_cast<uint64_t>(policy::Network::kDeny)));
  out.plan.work_folder = in.text(kMostText);
  out.plan.agent = in.text(kMostText);
  out.plan.command = unpack_list(in);
  out.plan.weakenings = unpack_list(in);
  for (uint64_t n = in.number(kMostWorks); n > 0 && in.good(); --n) {
    workspace::Work work;
    work.name = in.text(kMostText);
    work.record = in.text(workspace::Work::kMostRecord);
    work.always = in.number(1) != 0;
    out.works.push_back(std::move(work));
  }
  if (!in.at_end()) return base::refuse(kOperation, out.session, "it is not whole");
  return out;
}

int note_guest(int file, pid_t guest) {
  std::string bytes;
  base::pack_number(bytes, static_cast<uint64_t>(guest));
  base::pack_number(bytes, start_time_of(guest));
  const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), kMagic.size());
  if (n == static_cast<ssize_t>(bytes.size())) return 0;
  return n < 0 ? errno : EIO;
}

uint64_t start_time_of(pid_t pid) {
  const auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return 0;
  // The name in parentheses may hold anything; after it come the fields from the third on.
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return 0;
  const auto fields = base::split(std::string_view(*stat).substr(name_end + 1), ' ');
  constexpr size_t kStartTime = 22 - 3 + 1;  // the first is empty
  uint64_t out = 0;
  if (fields.size() <= kStartTime || !base::parse_uint(fields[kStartTime], out)) return 0;
  return out;
}

}  // namespace belljar::session
