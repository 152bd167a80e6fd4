#define _GNU_SOURCE
#include "nvme_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PAGE = 4096, PATH = 4096, MOST_BLOCKS = 65536 };

/* Of the Identify command and what it says of a namespace (NVM Command Set Specification, "Identify Namespace"). */
enum { IDENTIFY = 0x06, FLBAS = 26, LBA_FORMATS = 128, LBA_FORMAT_BYTES = 4 };

static int refuse(const char **why, int error, const char *words)
{
    *why = words;
    return -error;
}

/* The block device's folder in sysfs, links resolved; whether it is a whole namespace, and which. */
static bool find_folder(const struct stat *block, char *folder, unsigned *controller, unsigned *namespace)
{
    char link[64];
    int end = 0;

    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(block->st_rdev), minor(block->st_rdev));
    if (!S_ISBLK(block->st_mode) || !realpath(link, folder))
        return false;
    const char *name = strrchr(folder, '/') + 1;
    return sscanf(name, "nvme%un%u%n", controller, namespace, &end) == 2 && name[end] == '\0';
}

static bool read_text(const char *path, char *text, int size)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    bool found = fgets(text, size, file);
    fclose(file);
    return found;
}

/* The st_rdev of the generic device, which lies beside the block device; 0: there is none. */
static dev_t find_generic(const char *folder, unsigned controller, unsigned namespace)
{
    char path[PATH + 64], text[32];
    unsigned numbers[2];

    snprintf(path, sizeof path, "%.*s/ng%un%u/dev", (int)(strrchr(folder, '/') - folder), folder, controller,
             namespace);
    if (!read_text(path, text, sizeof text) || sscanf(text, "%u:%u", &numbers[0], &numbers[1]) != 2)
        return 0;
    return makedev(numbers[0], numbers[1]);
}

/* The most that one command carries: the controller's limit (MDTS), and a piece of memory for each page. */
static uint32_t most_bytes(const struct lun *lun, const char *folder)
{
    char path[PATH + 64], text[32];
    uint64_t most = (uint64_t)MOST_BLOCKS * lun->block;

    snprintf(path, sizeof path, "%s/queue/max_hw_sectors_kb", folder);
    if (read_text(path, text, sizeof text) && strtoull(text, NULL, 10) * 1024 < most)
        most = strtoull(text, NULL, 10) * 1024;
    if (lun->queue.max_segments && (uint64_t)lun->queue.max_segments * PAGE < most)
        most = (uint64_t)lun->queue.max_segments * PAGE;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* Whether its blocks are as long as the block device's, and have no metadata beside them. */
static int check_format(const struct lun *lun, int fd, uint32_t nsid, const char **why)
{
    unsigned char *page = aligned_alloc(PAGE, PAGE);
    struct nvme_passthru_cmd identify = {
        .opcode = IDENTIFY, .nsid = nsid, .addr = (uint64_t)(uintptr_t)page, .data_len = PAGE};

    if (!page)
        return refuse(why, ENOMEM, "there is no memory");
    int result = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &identify);
    unsigned format = (page[FLBAS] & 0xfu) | (page[FLBAS] >> 1 & 0x30u);
    const unsigned char *of = &page[LBA_FORMATS + LBA_FORMAT_BYTES * format];
    bool metadata = of[0] || of[1], same = of[2] < 32 && 1u << of[2] == lun->block;
    free(page);
    if (result != 0)
        return refuse(why, result < 0 ? errno : EIO,
                      "it refuses to be identified (NVME_IOCTL_ADMIN_CMD): run the slave as root");
    if (metadata)
        return refuse(why, EOPNOTSUPP, "its format has metadata with each block, which these commands do not carry");
    return same ? 0 : refuse(why, EINVAL, "its block device has another logical block size than its format");
}

static int check_same(struct lun *lun, int fd, dev_t device, const char **why)
{
    struct stat status;
    int nsid = ioctl(lun->fd, NVME_IOCTL_ID);

    if (fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode) || status.st_rdev != device)
        return refuse(why, ENODEV, "/dev does not show its generic device under its name");
    if (nsid <= 0 || ioctl(fd, NVME_IOCTL_ID) != nsid)
        return refuse(why, ENODEV, "its generic device is another namespace (NVME_IOCTL_ID)");
    lun->nsid = (uint32_t)nsid;
    return check_format(lun, fd, lun->nsid, why);
}

static int open_generic(struct lun *lun, const char **why)
{
    unsigned controller, namespace;
    char folder[PATH], path[64];
    struct stat block;

    if (fstat(lun->fd, &block) != 0 || !find_folder(&block, folder, &controller, &namespace))
        return refuse(why, ENOTTY, "it drives whole NVMe namespaces (/dev/nvme0n1)");
    dev_t device = find_generic(folder, controller, namespace);
    if (device == 0)
        return refuse(why, ENODEV, "it has no generic device (/dev/ng0n1; Linux 5.13 has)");
    snprintf(path, sizeof path, "/dev/ng%un%u", controller, namespace);
    int fd = open(path, (lun->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return refuse(why, errno, "its generic device cannot be opened: run the slave as root");
    int result = check_same(lun, fd, device, why);
    if (result != 0) {
        close(fd);
        return result;
    }
    lun->most_bytes = most_bytes(lun, folder);
    lun->generic = fd;
    return 0;
}

int nvme_namespace_open(struct lun *lun, uint32_t blocksize, const char **why)
{
    int result = lun->generic < 0 ? open_generic(lun, why) : 0;

    if (result == 0 && blocksize > lun->most_bytes)
        return refuse(why, EINVAL,
                      "blocksize is above what one command may carry (queue/max_hw_sectors_kb, and a page "
                      "for each of queue/max_segments), and nothing splits it");
    return result;
}
