#include "linux/descriptor_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/pair.h"

namespace belljar::linux {
namespace {

class DescriptorPassing : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(base::make_pair(SOCK_SEQPACKET, one_, other_)); }
  base::Fd one_;
  base::Fd other_;
  char got_ = 0;
  base::Fd fd_;
};

TEST_F(DescriptorPassing, AMessageComesWithItsDescriptorOrWithout) {
  ASSERT_EQ(send_with_descriptor(one_.get(), "a", 1, STDIN_FILENO), 0);
  EXPECT_EQ(receive_with_descriptor(other_.get(), &got_, 1, fd_), 0);
  EXPECT_TRUE(fd_);
  fd_.reset();
  ASSERT_EQ(send_with_descriptor(one_.get(), "b", 1, -1), 0);
  EXPECT_EQ(receive_with_descriptor(other_.get(), &got_, 1, fd_), 0);
  EXPECT_FALSE(fd_);
  EXPECT_EQ(got_, 'b');
}

TEST_F(DescriptorPassing, MoreThanOneIsRefused) {
  const int two[] = {STDIN_FILENO, STDOUT_FILENO};
  ASSERT_EQ(send_with_descriptors(one_.get(), "a", 1, two, 2), 0);
  EXPECT_EQ(receive_with_descriptor(other_.get(), &got_, 1, fd_), EPROTO);
}

// What was sent to it and not read hides nothing that it has said.
TEST_F(DescriptorPassing, TheLastWordOfWhoHasEndedIsHeard) {
  ASSERT_EQ(send_with_descriptor(one_.get(), "a", 1, -1), 0);
  ASSERT_EQ(send_with_descriptor(other_.get(), "unread", 6, -1), 0);
  one_.reset();
  EXPECT_EQ(receive_with_descriptor(other_.get(), &got_, 1, fd_), 0);
  EXPECT_EQ(got_, 'a');
  EXPECT_EQ(receive_with_descriptor(other_.get(), &got_, 1, fd_), EPIPE);
}

// A guest may see to it that there is no room. What it says is heard all the same.
TEST_F(DescriptorPassing, WithoutRoomForTheDescriptorTheMessageIsThere) {
  ASSERT_EQ(send_with_descriptor(one_.get(), "a", 1, STDIN_FILENO), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int error = receive_with_descriptor(other_.get(), &got_, 1, fd_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(got_, 'a');
  EXPECT_FALSE(fd_);
}

}  // namespace
}  // namespace belljar::linux
