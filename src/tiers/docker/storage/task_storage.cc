#include "tiers/docker/storage/task_storage.h"

#include <unistd.h>

#include <utility>

#include "base/pack.h"

namespace belljar::tiers::docker::storage {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kMostText = 4096;

}  // namespace

uint64_t page_rounded(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

TaskStorage plan_storage(std::string task, std::string allocation, std::string clone, std::string image_id,
                         const Ceilings& ceilings) {
  TaskStorage out;
  const std::string stem = "belljar-task-" + task;
  out.work = {stem + "-work", page_rounded(ceilings.work_bytes), ceilings.work_files, {}};
  out.git = {stem + "-git", page_rounded(ceilings.git_bytes), ceilings.git_files, {}};
  out.keeper = stem + "-keeper";
  out.task = std::move(task);
  out.allocation = std::move(allocation);
  out.clone = std::move(clone);
  out.image_id = std::move(image_id);
  return out;
}

uint64_t bytes_of(const TaskStorage& storage) {
  return storage.work.bytes + storage.git.bytes;
}

std::string encode(const TaskStorage& storage) {
  std::string out;
  base::pack_number(out, kFormat);
  for (const std::string* text :
       {&storage.task, &storage.allocation, &storage.clone, &storage.image_id, &storage.keeper, &storage.keeper_id}) {
    base::pack_text(out, *text);
  }
  for (const Volume* volume : {&storage.work, &storage.git}) {
    base::pack_text(out, volume->name);
    base::pack_number(out, volume->bytes);
    base::pack_number(out, volume->files);
    base::pack_text(out, volume->mountpoint);
  }
  return out;
}

base::Result<TaskStorage> decode_storage(std::string_view record) {
  base::Unpacker in(record);
  TaskStorage out;
  const uint64_t format = in.number();
  for (std::string* text : {&out.task, &out.allocation, &out.clone, &out.image_id, &out.keeper, &out.keeper_id}) {
    *text = in.text(kMostText);
  }
  for (Volume* volume : {&out.work, &out.git}) {
    volume->name = in.text(kMostText);
    volume->bytes = in.number();
    volume->files = in.number();
    volume->mountpoint = in.text(kMostText);
  }
  if (format != kFormat || !in.at_end() || out.task.empty() || out.allocation.empty()) {
    return base::refuse("read the record of a task", out.task, "it is not whole, or of another version, refusing");
  }
  return out;
}

}  // namespace belljar::tiers::docker::storage
