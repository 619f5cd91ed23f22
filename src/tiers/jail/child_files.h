// The guest's file tree, made by the child: every mount, from the new root to the end of the host's.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tiers/jail/child.h"

namespace belljar::tiers::jail {

// Decimal digits of `value` behind `prefix`, without stdio.
template <size_t N>
const char* numbered(std::array<char, N>& buffer, const char* prefix, uint64_t value) {
  size_t at = std::strlen(prefix);
  std::memcpy(buffer.data(), prefix, at);
  std::array<char, 24> digits{};
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) buffer[at++] = digits[--count];
  buffer[at] = '\0';
  return buffer.data();
}

// Notes in the Child what went wrong, for the launcher. Nothing here uses the heap.
class ChildPart {
 protected:
  explicit ChildPart(Child& child) : child_(child), base_(child.foundation) {}
  // Always false.
  bool fail(const char* operation, const char* subject, int code) {
    child_.failed_operation = operation;
    child_.failed_subject = subject;
    child_.failed_code = code;
    return false;
  }
  // `good`; when it is false the failure is errno's.
  bool check(bool good, const char* operation, const char* subject = "") {
    return good || fail(operation, subject, errno);
  }

  Child& child_;
  const Foundation& base_;
};

// In the order of the functions. Each returns true to go on; false with the failure noted.
class Files : ChildPart {
 public:
  explicit Files(Child& child) : ChildPart(child) {}

  // Mounts that no plan changes, attached nowhere yet.
  bool make_mounts();
  // What most plans bind, while none is there. What cannot be had is left to open_trees(), which tells.
  void open_early_trees();
  // All sources of the program, before anything is attached.
  bool open_trees();
  // The scratch tmpfs, and the new root on top of the host's.
  bool make_scratch();
  bool attach_root();
  // One step of the program. `id_map` is the user namespace of the id-mapped binds, for a step that is one.
  bool carry_out(Step& step, int id_map);
  // Makes the new root the only one.
  bool change_root();

  // Descriptors: the root of the scratch tmpfs, a proc that nothing is mounted on, and belljar-guest on a read-only
  // mount that the guest cannot see.
  [[nodiscard]] int scratch() const { return scratch_; }
  [[nodiscard]] int proc() const { return proc_; }
  [[nodiscard]] int guest() const { return guest_; }

 private:
  [[nodiscard]] int open_in_root(const char* path, uint64_t flags) const;
  [[nodiscard]] int open_host(const char* path) const;
  bool take_early_tree(Step& step);
  bool open_tree_of(Step& step);
  bool map_ids_of(const Step& step, int id_map);
  bool open_guest();
  bool make_folder(int folder, const Step& step);
  bool make_file(int folder, const char* path, std::string_view text, mode_t mode, bool owned);
  bool attach(int tree, const Step& step);
  bool park(int tree, const char* name);
  bool make_template(const char* name);
  bool attach_scratch(const Step& step);
  bool attach_proc(const Step& step);
  bool attach_mask(const Step& step);
  bool attach_mask_by_name(const Step& step);
  bool attach_read_only(const Step& step);
  bool attach_private(Step& step);
  bool make_layers(int folder, int below, const Step& step);
  int new_overlay(const char* name);
  bool attach_file(const Step& step);
  bool clone_over(int folder, const char* path, int target, const char* name, uint64_t attributes);
  bool open_target(const Step& step, bool may_be_missing, int& at);

  int root_ = -1;  // the new root
  int new_proc_ = -1;
  int new_pts_ = -1;
  int scratch_ = -1;
  int proc_ = -1;
  int guest_ = -1;
};

}  // namespace belljar::tiers::jail
