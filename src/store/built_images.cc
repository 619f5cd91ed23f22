// The images of a store.
#include <utility>

#include "store/store.h"

namespace belljar::store {

base::Status Store::register_image(const BuiltImage& image) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("INSERT OR REPLACE INTO built_image VALUES (?, ?, ?, ?, ?)"));
  return record.bind(1, image.id)
      .bind(2, image.tag)
      .bind(3, image.engine)
      .bind(4, image.pins)
      .bind(5, image.made)
      .run();
}

base::Result<std::vector<BuiltImage>> Store::built_images() const {
  BELLJAR_ASSIGN(Statement records,
                 database_.prepare("SELECT id, tag, engine, pins, made FROM built_image ORDER BY made DESC, id"));
  std::vector<BuiltImage> out;
  for (;;) {
    BELLJAR_ASSIGN(const bool row, records.step());
    if (!row) return out;
    out.push_back({records.text(0), records.text(1), records.text(2), records.text(3), records.integer(4)});
  }
}

base::Result<bool> Store::unregister_image(const std::string& id) const {
  BELLJAR_ASSIGN(Statement record, database_.prepare("DELETE FROM built_image WHERE id = ? RETURNING 1"));
  record.bind(1, id);
  BELLJAR_ASSIGN(const bool was_there, record.step());
  // To its end: what is not stepped through may be undone.
  if (was_there) BELLJAR_TRY(record.run());
  return was_there;
}

}  // namespace belljar::store
