/* Reads a portable bitmap from standard input with CRoaring, writes to standard
 * error "cardinality minimum maximum checksum", and to standard output the same
 * set as CRoaring itself serializes it. Exit status 1: CRoaring refuses it. */
#include <roaring/roaring.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool add(uint32_t id, void *sum) {
    *(uint64_t *)sum = (*(uint64_t *)sum ^ id) * UINT64_C(1099511628211); /* FNV-1a over ids */
    return true;
}

int main(void) {
    size_t room = (size_t)1 << 30, size;
    char *bytes = malloc(room);
    if (bytes == NULL) return 2;
    size = fread(bytes, 1, room, stdin);
    roaring_bitmap_t *set = roaring_bitmap_portable_deserialize_safe(bytes, size);
    if (set == NULL) return 1;
    uint64_t sum = UINT64_C(14695981039346656037);
    roaring_iterate(set, add, &sum);
    fprintf(stderr, "%" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", roaring_bitmap_get_cardinality(set),
            roaring_bitmap_minimum(set), roaring_bitmap_maximum(set), sum);
    roaring_bitmap_t *own = roaring_bitmap_create();
    roaring_bitmap_or_inplace(own, set);
    roaring_bitmap_run_optimize(own);
    size = roaring_bitmap_portable_serialize(own, bytes);
    fwrite(bytes, 1, size, stdout);
    return 0;
}
