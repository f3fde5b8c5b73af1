/* Runs kernels for whoever writes to its standard input, one call after the other, until that ends.

   A call: the path of a library and the name of an entry in it, each behind its length; how many buffers, integers and
   pieces; the integers; of each buffer how many bytes, whether they are wanted back, and its bytes. The answer: the
   bytes of the buffers that are wanted. Numbers are of 64 bits. What goes wrong is said on standard error, and ends it.

   A buffer begins on a line of 64 bytes, as lazygrad's allocator promises, and a page that nobody may touch follows the
   line that it ends on: a kernel that reads or writes far behind it dies. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 65536L /* the largest page of these processors */

typedef void (*Entry)(void** bufs, int64_t* vals, int32_t piece, int32_t pieces);

/* lazygrad's own memory for the tiles of kernels, and its worker pool, compiled by it */
void lazygrad_scratch_start(int64_t key);
int lazygrad_scratch_reserve(int64_t nbytes);
void lazygrad_run_region(Entry entry, void** bufs, int64_t* vals, int32_t pieces, int32_t threads);

static void get(void* into, size_t n) {
  if (n && fread(into, 1, n, stdin) != n) {
    if (feof(stdin)) exit(0);
    exit(3);
  }
}
static int64_t number(void) {
  int64_t n;
  get(&n, sizeof n);
  return n;
}
static char* text(void) {
  int64_t n = number();
  char* found = calloc(n + 1, 1);
  get(found, n);
  return found;
}

int main(void) {
  pthread_key_t key;
  pthread_key_create(&key, free);
  lazygrad_scratch_start(key);
  if (!lazygrad_scratch_reserve(1 << 24)) return 4;
  for (;;) {
    char *path = text(), *name = text();
    void* library = dlopen(path, RTLD_NOW);
    Entry entry = library ? (Entry)dlsym(library, name) : 0;
    if (!entry) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    int64_t buffers = number(), integers = number(), pieces = number();
    int64_t* vals = calloc(integers + 1, sizeof *vals);
    get(vals, integers * sizeof *vals);
    void** bufs = calloc(buffers + 1, sizeof *bufs);
    int64_t *sizes = calloc(buffers + 1, sizeof *sizes), *wanted = calloc(buffers + 1, sizeof *wanted);
    char** pages = calloc(buffers + 1, sizeof *pages);
    for (int64_t n = 0; n < buffers; n++) {
      sizes[n] = number(), wanted[n] = number();
      int64_t whole = (sizes[n] + PAGE) / PAGE * PAGE;
      pages[n] = mmap(0, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages[n] == MAP_FAILED || mprotect(pages[n] + whole, PAGE, PROT_NONE)) return 5;
      bufs[n] = pages[n] + whole - (sizes[n] + 63) / 64 * 64;
      get(bufs[n], sizes[n]);
    }
    if (pieces == 1) entry(bufs, vals, 0, 1);
    else lazygrad_run_region(entry, bufs, vals, pieces, 4);
    for (int64_t n = 0; n < buffers; n++) {
      if (wanted[n]) fwrite(bufs[n], 1, sizes[n], stdout);
      munmap(pages[n], (sizes[n] + PAGE) / PAGE * PAGE + PAGE);
    }
    fflush(stdout);
    free(path), free(name), free(vals), free(bufs), free(sizes), free(wanted), free(pages);
  }
}
