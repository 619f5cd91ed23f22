// How much memory the buffers of all connections may take together.
#pragma once

#include <cstddef>

namespace belljar::egress {

// Counts bytes of buffers. Who gets none is refused; nobody waits.
class Budget {
 public:
  explicit Budget(size_t limit) : limit_(limit) {}
  [[nodiscard]] size_t used() const { return used_; }

 private:
  friend class Share;
  size_t limit_;
  size_t used_ = 0;
};

// What one connection holds of it; given back when this goes.
class Share {
 public:
  explicit Share(Budget& budget) : budget_(budget) {}
  ~Share() { budget_.used_ -= held_; }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Holds `bytes` from now on, or as much as before and false.
  [[nodiscard]] bool resize(size_t bytes) {
    if (bytes > held_ && bytes - held_ > budget_.limit_ - budget_.used_) return false;
    budget_.used_ += bytes;
    budget_.used_ -= held_;
    held_ = bytes;
    return true;
  }

 private:
  Budget& budget_;
  size_t held_ = 0;
};

}  // namespace belljar::egress
