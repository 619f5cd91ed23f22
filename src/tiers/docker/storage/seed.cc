#include "tiers/docker/storage/seed.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/fd.h"
#include "tiers/docker/engine_json.h"
#include "tiers/docker/storage/allocate.h"
#include "tiers/docker/storage/helpers.h"
#include "tiers/docker/storage/volume_json.h"

namespace belljar::tiers::docker::storage {
namespace {

constexpr std::string_view kSeeding = "fill the task's storage";
constexpr auto kSeederCleanup = std::chrono::seconds(20);
constexpr int kPipeBytes = 1 << 20;  // what anybody may ask for (pipe(7), pipe-max-size)
constexpr int kSeederPauseMilliseconds = 2;
constexpr int kLookEvery = 100;  // pauses between two looks at the seeder

// A seeder that has ended closes its FIFO: that is an error to be told, not a signal to die of.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;  // NOLINT(cppcoreguidelines-pro-type-union-access)
    ::sigaction(SIGPIPE, &ignore, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() { ::sigaction(SIGPIPE, &before_, nullptr); }

 private:
  struct sigaction before_{};
};

class FifoSink : public workspace::TreeSink {
 public:
  FifoSink(int fifo, const base::Deadline& deadline) : fifo_(fifo), deadline_(deadline) {}

  base::Status write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fifo_, bytes.data(), bytes.size());
      if (n > 0) {
        bytes.remove_prefix(static_cast<size_t>(n));
      } else {
        BELLJAR_TRY(wait());
      }
    }
    return {};
  }
  // By splice(2): the pages of the file themselves, not a copy.
  base::Status send(int file, uint64_t size) override {
    while (size > 0) {
      const ssize_t n = ::splice(file, nullptr, fifo_, nullptr, size, SPLICE_F_NONBLOCK);
      if (n == 0) return base::refuse(kSeeding, "", "a file of the clone changes meanwhile, refusing");
      if (n > 0) {
        size -= static_cast<uint64_t>(n);
      } else {
        BELLJAR_TRY(wait());
      }
    }
    return {};
  }

 private:
  // After a failed call, whose errno it judges.
  [[nodiscard]] base::Status wait() const {
    const int code = errno;
    if (code == EINTR) return {};
    if (code == EPIPE) return base::refuse(kSeeding, "", "the seeder has stopped reading", "is a volume full?");
    if (code != EAGAIN) return base::system_error(kSeeding, "", code);
    pollfd one{fifo_, POLLOUT, 0};
    if (deadline_.passed() || (::poll(&one, 1, deadline_.poll_timeout()) == 0 && deadline_.passed())) {
      return base::refuse(kSeeding, "", "the time was up, refusing");
    }
    return {};
  }

  int fifo_;
  const base::Deadline& deadline_;
};

base::Result<bool> runs(const Engine& engine, const std::string& id, const base::Deadline& deadline) {
  BELLJAR_ASSIGN(const Answered answer,
                 require(engine.ask("GET", "/containers/" + id + "/json", deadline), "look at the seeder", id));
  return is_running(answer.body);
}

// Opens for writing once the seeder reads (fifo(7): ENXIO before).
base::Result<base::Fd> open_fifo(const Engine& engine, const std::string& id, const std::string& path,
                                 const base::Deadline& deadline) {
  for (int count = 1;; ++count) {
    base::Fd out(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (out) {
      (void)::fcntl(out.get(), F_SETPIPE_SZ, kPipeBytes);
      return out;
    }
    if (errno != ENXIO) return base::system_error(kSeeding, path, errno);
    if (deadline.passed()) return base::refuse(kSeeding, path, "the time was up, refusing");
    if (count % kLookEvery == 0) {
      BELLJAR_ASSIGN(const bool running, runs(engine, id, deadline));
      if (!running) return base::refuse(kSeeding, path, "the seeder has ended without reading it, refusing");
    }
    (void)::poll(nullptr, 0, kSeederPauseMilliseconds);
  }
}

base::Status make_streams(const std::string& streams) {
  // What it lies in is this user's alone; in the container it is another user's to read.
  if (::mkdir(streams.c_str(), 0755) != 0 || ::chmod(streams.c_str(), 0755) != 0) {
    return base::system_error(kSeeding, streams, errno);
  }
  for (const char* name : {kWorkStream, kGitStream}) {
    const std::string path = streams + "/" + name;
    if (::mkfifo(path.c_str(), 0644) != 0 || ::chmod(path.c_str(), 0644) != 0) {
      return base::system_error(kSeeding, path, errno);
    }
  }
  return {};
}

void remove_streams(const std::string& streams) {
  for (const char* name : {kWorkStream, kGitStream}) ::unlink((streams + "/" + name).c_str());
  ::rmdir(streams.c_str());
}

base::Status check_bound(const TaskStorage& storage, const workspace::Clone& clone) {
  if (storage.clone == clone.record().token) return {};
  return base::refuse(kSeeding, storage.task, "it is bound to another clone, refusing");
}

}  // namespace

base::Result<Seeder> Seeder::start(const Engine& engine, const image::RegisteredImage& registered,
                                   const TaskStorage& storage, const workspace::Clone& clone,
                                   const std::string& streams, const base::Deadline& deadline) {
  BELLJAR_TRY(check_bound(storage, clone));
  BELLJAR_TRY(clone.verify());
  if (registered.id() != storage.image_id) {
    return base::refuse(kSeeding, storage.task, "it was made of another image, refusing");
  }
  BELLJAR_ASSIGN(const Image image, helper_image(engine, registered.id(), deadline));
  BELLJAR_TRY(make_streams(streams));
  BELLJAR_ASSIGN(std::string id,
                 create_checked(engine, seeder_profile(storage, image, engine.info(), streams), deadline));
  BELLJAR_TRY(require(engine.ask("POST", "/containers/" + id + "/start", deadline), "start the seeder", id));
  return Seeder(std::move(id), streams);
}

base::Status Seeder::feed(const Engine& engine, const workspace::Clone& clone, workspace::TreeKind kind,
                          const base::Deadline& deadline) const {
  const char* const name = kind == workspace::TreeKind::kWork ? kWorkStream : kGitStream;
  BELLJAR_ASSIGN(const base::Fd fifo, open_fifo(engine, id_, streams_ + "/" + name, deadline));
  FifoSink sink(fifo.get(), deadline);
  return clone.write(kind, sink, deadline);
}

base::Status Seeder::run(const Engine& engine, const workspace::Clone& clone, const base::Deadline& deadline) {
  const NoPipeSignal no_signal;
  BELLJAR_TRY(feed(engine, clone, workspace::TreeKind::kWork, deadline));
  BELLJAR_TRY(feed(engine, clone, workspace::TreeKind::kMetadata, deadline));
  BELLJAR_ASSIGN(const Answered waited,
                 require(engine.ask("POST", "/containers/" + id_ + "/wait", deadline), "wait for the seeder", id_));
  BELLJAR_ASSIGN(const int64_t code, read_exit_code(waited.body));
  if (code != 0) {
    return base::refuse(kSeeding, id_, "the seeder ended with " + std::to_string(code) + ", refusing",
                        "is a volume too small? See --work-size and --git-size");
  }
  // A replaced clone would have been read in part.
  BELLJAR_TRY(clone.verify());
  if (deadline.passed()) return base::refuse(kSeeding, id_, "the time was up, refusing");
  return {};
}

base::Status seed(const Engine& engine, const image::RegisteredImage& image, const TaskStorage& storage,
                  const workspace::Clone& clone, const std::string& streams, const base::Deadline& deadline) {
  auto status = [&]() -> base::Status {
    BELLJAR_ASSIGN(Seeder seeder, Seeder::start(engine, image, storage, clone, streams, deadline));
    return seeder.run(engine, clone, deadline);
  }();
  const Released released = release_seeder(engine.socket(), storage, !status, base::Deadline::after(kSeederCleanup));
  remove_streams(streams);
  if (released.unreleased.empty()) return status;
  base::Error error =
      status ? base::refuse(kSeeding, storage.task, "the seeder is not gone").error() : std::move(status).error();
  for (const std::string& one : released.unreleased) error.reason += "; not removed: " + one;
  return std::unexpected(std::move(error));
}

}  // namespace belljar::tiers::docker::storage
