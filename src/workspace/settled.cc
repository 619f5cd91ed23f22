#include "workspace/settled.h"

#include <array>
#include <utility>

#include "base/pack.h"

namespace belljar::workspace {
namespace {

std::array<std::string*, 1> texts_of(std::string& text) {
  return {&text};
}
std::array<std::string*, 1> texts_of(Change& change) {
  return {&change.path};
}
std::array<std::string*, 3> texts_of(Quarantined& quarantined) {
  return {&quarantined.path, &quarantined.moved_to, &quarantined.reason};
}
std::array<std::string*, 2> texts_of(ConfigFile& config) {
  return {&config.path, &config.reason};
}

}  // namespace

const char* to_text(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kRemoved:
      return "removed";
    case ChangeKind::kChanged:
      break;
  }
  return "changed";
}

const char* to_text(ConfigOutcome outcome) {
  switch (outcome) {
    case ConfigOutcome::kKept:
      return "kept";
    case ConfigOutcome::kUpdated:
      return "updated";
    case ConfigOutcome::kRefused:
      break;
  }
  return "refused";
}

template <class T>
void Settled::add_to(std::vector<T>& list, T entry) {
  size_t size = 0;
  for (std::string* text : texts_of(entry)) {
    if (text->size() > kMostText) text->resize(kMostText);
    size += text->size();
  }
  if (list.size() >= kMostEntries || bytes_ + size > kMostBytes) {
    ++unlisted_;
    return;
  }
  bytes_ += size;
  list.push_back(std::move(entry));
}

void Settled::add(Change change) {
  add_to(changes_, std::move(change));
}
void Settled::add(Quarantined quarantined) {
  add_to(quarantined_, std::move(quarantined));
}
void Settled::add(ConfigFile config) {
  add_to(configs_, std::move(config));
}
void Settled::add_unreleased(std::string text) {
  add_to(unreleased_, std::move(text));
}
void Settled::add_note(std::string text) {
  add_to(notes_, std::move(text));
}

void Settled::append(const Settled& other) {
  for (const Change& change : other.changes_) add(change);
  for (const Quarantined& quarantined : other.quarantined_) add(quarantined);
  for (const ConfigFile& config : other.configs_) add(config);
  for (const std::string& text : other.unreleased_) add_unreleased(text);
  for (const std::string& text : other.notes_) add_note(text);
  unlisted_ += other.unlisted_;
  unfinished_ = unfinished_ || other.unfinished_;
}

bool Settled::empty() const {
  return changes_.empty() && quarantined_.empty() && configs_.empty() && unreleased_.empty() && notes_.empty() &&
         unlisted_ == 0 && !unfinished_;
}

void take_result(const Work& work, const base::Result<Settled>& result, Settled& out, std::vector<Work>& left) {
  if (result) {
    out.append(*result);
  } else {
    out.add_unreleased(work.name + ": " + result.error().message());
  }
  const bool released = result && result->unreleased().empty();
  if (!(result && result->unfinished()) && (!work.always || released)) return;
  left.push_back(work);
  left.back().always = true;
}

std::string encode(const Settled& settled) {
  std::string out;
  base::pack_number(out, settled.changes().size());
  for (const Change& change : settled.changes()) {
    base::pack_text(out, change.path);
    base::pack_number(out, static_cast<uint64_t>(change.kind));
  }
  base::pack_number(out, settled.quarantined().size());
  for (const Quarantined& quarantined : settled.quarantined()) {
    base::pack_text(out, quarantined.path);
    base::pack_text(out, quarantined.moved_to);
    base::pack_text(out, quarantined.reason);
  }
  base::pack_number(out, settled.configs().size());
  for (const ConfigFile& config : settled.configs()) {
    base::pack_text(out, config.path);
    base::pack_number(out, static_cast<uint64_t>(config.outcome));
    base::pack_text(out, config.reason);
  }
  for (const std::vector<std::string>* list : {&settled.unreleased(), &settled.notes()}) {
    base::pack_number(out, list->size());
    for (const std::string& text : *list) base::pack_text(out, text);
  }
  base::pack_number(out, settled.unlisted());
  base::pack_number(out, settled.unfinished() ? 1 : 0);
  return out;
}

base::Result<Settled> decode_settled(std::string_view bytes) {
  base::Unpacker in(bytes);
  constexpr size_t kText = Settled::kMostText;
  Settled out;
  // The fields are read one after the other: the order of evaluation in braces is that of the fields.
  for (uint64_t n = in.number(Settled::kMostEntries); n > 0 && in.good(); --n) {
    out.add(Change{in.text(kText), static_cast<ChangeKind>(in.number(static_cast<uint64_t>(ChangeKind::kRemoved)))});
  }
  for (uint64_t n = in.number(Settled::kMostEntries); n > 0 && in.good(); --n) {
    out.add(Quarantined{in.text(kText), in.text(kText), in.text(kText)});
  }
  for (uint64_t n = in.number(Settled::kMostEntries); n > 0 && in.good(); --n) {
    out.add(ConfigFile{in.text(kText),
                       static_cast<ConfigOutcome>(in.number(static_cast<uint64_t>(ConfigOutcome::kRefused))),
                       in.text(kText)});
  }
  for (uint64_t n = in.number(Settled::kMostEntries); n > 0 && in.good(); --n) out.add_unreleased(in.text(kText));
  for (uint64_t n = in.number(Settled::kMostEntries); n > 0 && in.good(); --n) out.add_note(in.text(kText));
  const bool over = out.unlisted_ != 0;
  out.unlisted_ = in.number(UINT64_MAX);
  out.unfinished_ = in.number(1) == 1;
  if (over || !in.at_end()) {
    return base::refuse("read what was settled", "", "the bytes are not whole or break the bounds");
  }
  return out;
}

}  // namespace belljar::workspace
