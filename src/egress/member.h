// What lives in a proxy: connections and tunnels, in one list, so that the end of the proxy is the end of all.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "net/event_loop.h"

namespace belljar::egress {

class Company;
struct Review;

class Member : public net::Disposable {
 protected:
  explicit Member(Company& company) : company_(company) {}
  // The rules have changed while this was there. Ends what is no longer allowed; true when that was the case.
  virtual bool rules_changed(const Review& /*review*/) { return false; }
  // Leaves the list; destroyed when the loop's round is over. Events of that round may still come: see left().
  void leave();
  [[nodiscard]] bool left() const { return left_; }
  [[nodiscard]] Company& company() const { return company_; }

 private:
  friend class Company;
  Company& company_;
  Member* previous_ = nullptr;
  Member* next_ = nullptr;
  bool left_ = false;
};

class Company {
 public:
  explicit Company(net::EventLoop& loop) : loop_(loop) {}
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  ~Company() { dissolve(); }

  // Ends all members at once. Only while the loop does not run.
  void dissolve() {
    for (Member* member = std::exchange(first_, nullptr); member != nullptr;) {
      Member* next = member->next_;
      delete member;
      member = next;
    }
    size_ = 0;
  }

  void join(std::unique_ptr<Member> member) {
    Member* raw = member.release();
    raw->next_ = first_;
    if (first_ != nullptr) first_->previous_ = raw;
    first_ = raw;
    ++size_;
  }
  [[nodiscard]] size_t size() const { return size_; }

  // Has every member look at the new rules. How many ended something.
  size_t rules_changed(const Review& review) {
    size_t ended = 0;
    for (Member* member = first_; member != nullptr;) {
      Member* next = member->next_;  // it may leave; no other does
      if (member->rules_changed(review)) ++ended;
      member = next;
    }
    return ended;
  }

 private:
  friend class Member;
  Member* take_out(Member& member) {
    (member.previous_ != nullptr ? member.previous_->next_ : first_) = member.next_;
    if (member.next_ != nullptr) member.next_->previous_ = member.previous_;
    --size_;
    return &member;
  }

  net::EventLoop& loop_;
  Member* first_ = nullptr;
  size_t size_ = 0;
};

inline void Member::leave() {
  if (left_) return;
  left_ = true;
  company_.loop_.dispose(std::unique_ptr<Member>(company_.take_out(*this)));
}

}  // namespace belljar::egress
