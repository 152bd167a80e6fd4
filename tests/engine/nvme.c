/* The nvme backend. "refused FILE": what the kernel itself says of a command to what is no NVMe device.
 * "namespace PATH": reads and writes at depth 1 and 32 lie where they should, by the block device; a block behind the
 * end is an error; a LUN that was opened read-only is not written, not even if the engine were to try. */
#include "life.h"

#include <fcntl.h>

#include "backends/backend.h"
#include "luns/nvme_namespace.h"

enum { BLOCK = 4096, DEPTH = 32, FROM = 1 << 20, TO = 9 << 20 };

static const char *path;
static char expected[BLOCK] __attribute__((aligned(BLOCK))), all[TO] __attribute__((aligned(BLOCK)));

static struct engine *started(bool writable)
{
    struct engine *e;
    int cpu = -1;

    CHECK_EQUAL(engine_open(&e, &backend_nvme, &cpu, 1), 0);
    CHECK_EQUAL(engine_open_lun(e, path, path, writable, true), 0);
    engine_set_lease(e, clock_now() + 1000 * NS_PER_S);
    return e;
}

static void ended(struct engine *e)
{
    uint32_t left[ENGINE_THREADS];

    CHECK_EQUAL(engine_close(e, 5.0, left), 0);
    engine_free(e);
}

static struct parameters parameters(uint32_t tags, double fraction_read, double iops)
{
    return (struct parameters){.fixed.iosequencer = fraction_read > 0.0 ? RANDOM_STEADY : SEQUENTIAL,
                               .setting = {.iops = iops,
                                           .fraction_read = fraction_read,
                                           .maxtags = tags,
                                           .blocksize = BLOCK,
                                           .range_start = FROM,
                                           .range_end = TO}};
}

static void create(struct engine *e, uint32_t tags, const struct parameters *p)
{
    int result = engine_create(e, 0, 0, 0, (struct ceiling){tags, BLOCK}, &everywhere, p);

    if (result != 0)
        fprintf(stderr, "create: %s (%s)\n", strerror(-result), engine_why(e));
    CHECK_EQUAL(result, 0);
}

static int block_device(void)
{
    int fd = open(path, O_RDWR | O_DIRECT);

    CHECK(fd >= 0);
    return fd;
}

/* Each tag's last read, by the block device: how many there were. */
static uint32_t check_reads(const struct instance *i)
{
    int fd = block_device();
    uint32_t checked = 0;

    for (uint32_t n = 0; n < i->ceiling.tags; n++) {
        const struct tag *tag = &i->tags[n];
        if (tag_bytes(tag) == 0)
            continue;
        CHECK(tag_offset(tag) >= FROM && tag_offset(tag) + BLOCK <= TO);
        CHECK_EQUAL(pread(fd, expected, BLOCK, (off_t)tag_offset(tag)), BLOCK);
        CHECK(memcmp(expected, tag_buffer(tag, false), BLOCK) == 0);
        checked++;
    }
    close(fd);
    return checked;
}

/* Each block gets its own number. */
static void mark(void)
{
    int fd = block_device();

    for (uint64_t at = 0; at < TO; at += BLOCK)
        memcpy(&all[at], &at, sizeof at);
    CHECK_EQUAL(pwrite(fd, all, TO, 0), TO);
    close(fd);
}

/* How many blocks have lost their number: one after the other, from the range's start. */
static int64_t written(void)
{
    int fd = block_device();
    int64_t count = 0;

    CHECK_EQUAL(pread(fd, all, TO, 0), TO);
    for (uint64_t at = 0; at < TO; at += BLOCK) {
        bool lost = memcmp(&all[at], &at, sizeof at) != 0;
        CHECK(!lost || at == FROM + (uint64_t)count * BLOCK);
        count += lost;
    }
    close(fd);
    return count;
}

static void drive(uint32_t tags, bool write)
{
    struct engine *e = started(write);
    struct parameters p = parameters(tags, write ? 0.0 : 1.0, write ? 2000.0 : -1.0);
    struct sums s;
    int64_t checked;

    mark();
    create(e, tags, &p);
    go(e, 1, 1, 500 * NS_PER_MS, &s);
    engine_stop(e, 1);
    finish(e, &s, tags);
    CHECK(s.completed > 0);
    CHECK_EQUAL(s.errors, 0);
    CHECK_EQUAL(s.bytes, s.completed * BLOCK);
    if (write) {
        checked = written();
        CHECK(checked >= s.completed && checked <= s.submitted); /* those of the last moment count in no result */
    } else {
        CHECK_EQUAL(written(), 0);
        checked = check_reads(&e->threads[0].instances[0]);
        CHECK(checked > 0);
    }
    printf("%s depth %u completed %lld checked %lld\n", write ? "writes" : "reads", tags, (long long)s.completed,
           (long long)checked);
    ended(e);
}

static void behind_the_end(void)
{
    struct engine *e = started(false);
    struct parameters p = parameters(4, 1.0, 1000.0);
    struct result r;
    struct sums s;
    struct end end;
    int64_t faults = 0;

    p.setting.range_start = e->luns[0]->size;
    p.setting.range_end = e->luns[0]->size *= 2;
    create(e, 4, &p);
    go(e, 1, 1, 200 * NS_PER_MS, &s);
    engine_stop(e, 1);
    while (!engine_ended(e, &end)) {
        while (engine_collect(e, false, &r) == 1) {
            for (uint32_t n = 0; n < r.fault_count; n++) {
                CHECK_EQUAL(r.faults[n].error, NVME_STATUS + 0x80); /* LBA Out of Range */
                faults += (int64_t)r.faults[n].count;
            }
            add_result(&s, &r, 4);
            result_free(&r);
        }
        wait_for_news(e, 100);
    }
    CHECK(s.errors > 0);
    CHECK_EQUAL(s.completed, 0);
    CHECK_EQUAL(faults, s.errors);
    printf("behind_the_end errors %lld\n", (long long)s.errors);
    ended(e);
}

/* One I/O by the backend alone, for a LUN whose generic device is open: what came of it. */
static int64_t one_io(struct lun *lun, bool write)
{
    struct parameters p = parameters(1, 1.0, -1.0);
    struct instance i = {0};
    struct completion completion;
    const char *why = "";
    _Atomic uint64_t progress = 0;
    void *context;

    CHECK_EQUAL(instance_create(&i, lun, (struct ceiling){1, BLOCK}, &everywhere, &p, &why), 0);
    i.created = 1;
    CHECK_EQUAL(instance_populate(&i, &progress), 0);
    struct tag *tag = &i.tags[0];
    tag->op = write ? OP_WRITE : OP_READ;
    tag->iocb.aio_offset = FROM;
    tag->iocb.aio_nbytes = BLOCK;
    if (write && lun->writable)
        instance_renew(tag);
    CHECK_EQUAL(backend_nvme.open(&context, 1, 0), 0);
    CHECK_EQUAL(backend_nvme.attach(context, &i, 1), 0);
    backend_nvme.prepare(context, &tag, 1);
    CHECK_EQUAL(backend_nvme.submit(context, &tag, 1), 1);
    CHECK_EQUAL(backend_nvme.wait(context, 10 * NS_PER_S, &completion, 1), 1);
    CHECK(completion.tag == tag);
    if (write && lun->writable && completion.result == BLOCK) {
        CHECK_EQUAL(pread(lun->fd, expected, BLOCK, FROM), BLOCK);
        CHECK(memcmp(expected, tag_buffer(tag, true), BLOCK) == 0);
    }
    backend_nvme.close(context);
    instance_destroy(&i);
    return completion.result;
}

static void refused_by_kernel(void)
{
    struct lun lun;

    CHECK_EQUAL(lun_open(&lun, path, path, true, true), 0);
    lun.generic = dup(lun.fd);
    CHECK_EQUAL(one_io(&lun, false), -EOPNOTSUPP);
    CHECK_EQUAL(one_io(&lun, true), -EOPNOTSUPP);
    lun_close(&lun);
}

static void consent(void)
{
    struct engine *e = started(false);
    struct parameters p = parameters(1, 0.0, -1.0);
    const char *why = "";
    struct lun lun;

    CHECK_EQUAL(engine_create(e, 0, 0, 0, (struct ceiling){1, BLOCK}, &everywhere, &p), -EROFS);
    ended(e);
    CHECK_EQUAL(lun_open(&lun, path, path, false, true), 0);
    CHECK_EQUAL(nvme_namespace_open(&lun, BLOCK, &why), 0);
    CHECK_EQUAL(fcntl(lun.generic, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK_EQUAL(one_io(&lun, false), BLOCK);
    CHECK_EQUAL(one_io(&lun, true), -EBADF);
    CHECK_EQUAL(nvme_namespace_open(&lun, lun.most_bytes + 1, &why), -EINVAL);
    printf("most bytes %u\n", lun.most_bytes);
    lun_close(&lun);
    CHECK_EQUAL(lun_open(&lun, path, path, true, true), 0);
    CHECK_EQUAL(nvme_namespace_open(&lun, BLOCK, &why), 0);
    CHECK_EQUAL(one_io(&lun, true), BLOCK);
    lun_close(&lun);
}

int main(int count, char **words)
{
    CHECK_EQUAL(count, 3);
    path = words[2];
    if (strcmp(words[1], "refused") == 0) {
        refused_by_kernel();
        return 0;
    }
    for (uint32_t tags = 1; tags <= DEPTH; tags *= DEPTH) {
        drive(tags, true);
        drive(tags, false);
    }
    behind_the_end();
    consent();
    return 0;
}
