// What the words of on_the_host.h do: the threads of a block, which run one after another or take turns, and what they
// exchange. Linked with each kernel.
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include "on_the_host.h"
#pragma GCC visibility push(hidden)
Three blockIdx, blockDim, threadIdx, gridDim;
int current_;

// The threads of a block that take turns: none where they run one after the other to the end.
#define MOST_THREADS 4096  // of a cluster
struct Waiting { int members, arrived, turn; };
struct Turn { jmp_buf at; bool over; const Waiting* on; int turn; };  // on: what it waits for, where that is known
static Turn* turns_;
static jmp_buf between_;
static unsigned exchanged_[MOST_THREADS];
static int cluster_;
static Waiting of_cluster_, of_blocks_[32], of_warp_[MOST_THREADS / 32];
// Blocks of a cluster run together, their threads one behind the other; each has shared memory of its own.
#define SHARED_NBYTES (227 << 10)
int rank_() { return cluster_ > 1 ? current_ / (int)(blockDim.x * blockDim.y * blockDim.z) : 0; }
void* of_rank_(void* mine, int rank) { return (char*)mine + (rank - rank_()) * SHARED_NBYTES; }
#define of_block_ of_blocks_[rank_()]
// It is somebody else's turn. Not by swapcontext, which asks the system each time, for a mask of signals.
static __attribute__((noipa)) void let_others_() {
    if (!_setjmp(turns_[current_].at)) _longjmp(between_, 1);
}
static void wait_(Waiting& on) {
    if (!turns_) return;
    const int turn = on.turn;
    if (++on.arrived == on.members) on.arrived = 0, ++on.turn;
    turns_[current_].on = &on, turns_[current_].turn = turn;
    while (on.turn == turn) let_others_();
    turns_[current_].on = nullptr;
}
static void left_(Waiting& on) {
    if (--on.members && on.arrived == on.members) on.arrived = 0, ++on.turn;
}
void wait_for_all_() { wait_(of_cluster_); }
void __syncthreads() { wait_(of_block_); }
void __syncwarp(unsigned) { wait_(of_warp_[current_ / 32]); }
void __threadfence() {}  // one thread of the host takes the turns of all
int __syncthreads_or(int value) {
    if (!turns_) return value;
    static int any;
    wait_(of_block_);
    any = 0;
    wait_(of_block_);
    any |= value;
    wait_(of_block_);
    return any;
}
unsigned of_lane_(unsigned word, int lane) {
    exchanged_[current_] = word;
    __syncwarp();
    word = exchanged_[current_ / 32 * 32 + lane];
    __syncwarp();
    return word;
}
// Shared memory before a block begins: NaN in every type.
extern char __start_of_a_block[] __attribute__((weak)), __stop_of_a_block[] __attribute__((weak));
static void forget_() {
    if (__start_of_a_block) memset(__start_of_a_block, 0xff, __stop_of_a_block - __start_of_a_block);
}
// Copies that go on by themselves, as late as they may be: where they go to is NaN from the start on, and what they bring
// is there when it has been waited for. group: how many the thread had closed before.
struct Copy { void* to; const void* from; int nbytes, group; };
struct Copies { Copy going[256]; int count, closed; };
static Copies copies_[MOST_THREADS];
void copy_later_(void* to, const void* from, int nbytes, bool inside) {
    Copies& mine = copies_[current_];
    if (mine.count == 256) abort();
    memset(to, 0xff, nbytes);
    mine.going[mine.count++] = {to, inside ? from : nullptr, nbytes, mine.closed};
}
void close_() { ++copies_[current_].closed; }
void arrived_(int newest) {
    Copies& mine = copies_[current_];
    int kept = 0;
    for (int i = 0; i < mine.count; ++i) {
        const Copy& it = mine.going[i];
        if (it.group >= mine.closed - newest)
            mine.going[kept++] = it;
        else if (it.from)
            memcpy(it.to, it.from, it.nbytes);
        else
            memset(it.to, 0, it.nbytes);
    }
    mine.count = kept;
}
// Products of a warpgroup that go on by themselves, as late as they may be: each reads its operands, swizzled as the
// device does it, when it has been waited for; rows that come from registers are those of when it began.
struct Products { float* sum; const void *rows, *columns; int count, chunk, group; bool more; unsigned fed[2][8]; };
struct Queue { Products going[64]; int count, closed; };
static Queue queues_[MOST_THREADS];
// A number of 16 bits: of a chunk of 8 float16, of 9 (a chunk is of 8, too) bfloat16.
static float short_(const void* at, bool brief) {
    unsigned short bits;
    memcpy(&bits, at, 2);
    if (brief) return same_bits<float>((unsigned)bits << 16);
    _Float16 half;
    memcpy(&half, &bits, 2);
    return half;
}
static float swizzled_(const void* operand, int row, int step, int chunk) {
    const size_t nbytes = chunk >= 8 ? 2 : 16 / chunk;
    size_t at = (size_t)operand + row * 128 + step * nbytes;
    at ^= (at >> 7 & 7) << 4;
    if (chunk >= 8) return short_((const void*)at, chunk == 9);
    unsigned word;
    memcpy(&word, (const void*)at, 4);
    word &= 0xffffe000u;
    float v;
    memcpy(&v, &word, 4);
    return v;
}
void multiply_later_(float* sum, const void* rows, const void* columns, int count, int chunk, bool more) {
    Queue& mine = queues_[current_];
    if (mine.count == 64) abort();
    mine.going[mine.count++] = {sum, rows, columns, count, chunk, mine.closed, more};
}
void multiply_later_(float* sum, const unsigned (&rows)[4], const void* columns, int count, int chunk, bool more) {
    static unsigned given[MOST_THREADS][4];
    memcpy(given[current_], rows, 16);
    __syncwarp();
    multiply_later_(sum, (const void*)nullptr, columns, count, chunk, more);
    Products& it = queues_[current_].going[queues_[current_].count - 1];
    for (int word = 0; word < 4; ++word)
        for (int e = 0; e < 4; ++e) it.fed[e % 2][e / 2 * 4 + word] = given[current_ / 4 * 4 + word][e];
    __syncwarp();
}
// A step of the words that a row was given.
static float fed_(const unsigned (&words)[8], int step, int chunk) {
    if (chunk >= 8) return short_((const char*)&words[step / 2] + step % 2 * 2, chunk == 9);
    return same_bits<float>(words[step] & 0xffffe000u);
}
void close_products_() { ++queues_[current_].closed; }
void products_(int newest) {
    Queue& mine = queues_[current_];
    int kept = 0;
    const int lane = current_ % 32, first = current_ / 32 % 4 * 16 + lane / 4;
    for (int i = 0; i < mine.count; ++i) {
        const Products it = mine.going[i];
        if (it.group >= mine.closed - newest) {
            mine.going[kept++] = it;
            continue;
        }
        for (int e = 0; e < 4 * it.count; ++e) {
            if (!it.more) it.sum[e] = 0.0f;
            for (int step = 0; step < it.chunk / 4 * 8; ++step)
                it.sum[e] += (it.rows ? swizzled_(it.rows, first + e / 2 % 2 * 8, step, it.chunk)
                                      : fed_(it.fed[e / 2 % 2], step, it.chunk)) *
                             swizzled_(it.columns, e / 4 * 8 + lane % 4 * 2 + e % 2, step, it.chunk);
        }
    }
    mine.count = kept;
}
// Values that count themselves in at the block that they are told to: until all of a step's are there and somebody has
// waited for them they are NaN, which is also what their places held before.
struct Told { float* place; float v; };
struct Signal { Told* told; int count, room, expected; };
static Signal signals_[32][64];
static int told_in_all_;
void expect_(int step, int nbytes) { signals_[rank_()][step].expected = nbytes / 4; }
void tell_later_(float* place, int rank, float v, int step) {
    Signal& its = signals_[rank][step];
    if (its.count == its.room) its.told = (Told*)realloc(its.told, sizeof(Told) * (its.room = 2 * its.room + 64));
    float* const there = (float*)of_rank_(place, rank);
    memset(there, 0xff, 4);
    its.told[its.count++] = {there, v};
    ++told_in_all_;
}
void wait_for_signal_(int step) {
    Signal& its = signals_[rank_()][step];
    while (its.count < its.expected) let_others_();
    if (its.count != its.expected) abort();
    for (int i = 0; i < its.count && its.told[i].place; ++i) *its.told[i].place = its.told[i].v, its.told[i].place = nullptr;
}
// A thread begins once, of whichever kernel it is, and stands ready for its next block where it has come to the end of one.
static const void* body_;
static void (*do_)(const void*);
static int ready_;  // so many do
static Turn of_all_[MOST_THREADS];
static char* stacks_;
#define STACK (1 << 17)
static void thread_() {
    for (;; let_others_()) {
        do_(body_);
        turns_[current_].over = true;
        left_(of_cluster_), left_(of_block_), left_(of_warp_[current_ / 32]);
    }
}
static __attribute__((noipa)) void begin_(char* stack) {
    ucontext_t at;
    getcontext(&at);
    at.uc_stack.ss_sp = stack, at.uc_stack.ss_size = STACK, at.uc_link = nullptr;
    makecontext(&at, &thread_, 0);
    if (!_setjmp(between_)) setcontext(&at);
}
static __attribute__((noipa)) void go_on_(Turn& turn) {
    if (!_setjmp(between_)) _longjmp(turn.at, 1);
}
static void let_(int i) {
    current_ = i;
    blockIdx.x = blockIdx.x / cluster_ * cluster_ + rank_();
    i %= blockDim.x * blockDim.y * blockDim.z;
    threadIdx.x = i % blockDim.x, threadIdx.y = i / blockDim.x % blockDim.y, threadIdx.z = i / blockDim.x / blockDim.y;
}
// One block, or a cluster's, its threads in turns; false where nobody can go on.
static bool in_turns_(int threads) {
    if (!stacks_)
        stacks_ = (char*)mmap(
            nullptr, (size_t)STACK * MOST_THREADS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    turns_ = of_all_;
    of_cluster_ = {threads, 0, 0};
    for (int i = 0; i < cluster_; ++i) of_blocks_[i] = {threads / cluster_, 0, 0};
    for (int i = 0; i < threads; ++i) {
        if (i % 32 == 0) of_warp_[i / 32] = {min(32, threads - i), 0, 0};
        of_all_[i].over = false, of_all_[i].on = nullptr;
    }
    // Those that another block has left in the middle begin anew.
    int begun = ready_;
    ready_ = 0;
    for (int left = threads, before = -1, moved = 0; left; before = moved) {
        left = moved = 0;
        for (int i = 0; i < threads; ++i) {
            Turn& its = of_all_[i];
            if (its.over) continue;
            if (its.on && its.on->turn == its.turn) {
                ++left;
                continue;
            }
            let_(i);
            if (i < begun)
                go_on_(its);
            else
                begin_(stacks_ + (size_t)STACK * i), begun = i + 1;
            left += !its.over;
        }
        moved = left + 4096 * (of_cluster_.turn + told_in_all_);
        for (const Waiting& block : of_blocks_) moved += 4096 * block.turn;
        for (const Waiting& warp : of_warp_) moved += 1024 * 4096 * warp.turn;
        if (moved == before) return false;
    }
    turns_ = nullptr, ready_ = begun;
    return true;
}
// Where memory ends that a kernel may touch, the grid ends (see Guarded in on_the_host.py).
static sigjmp_buf outside_;
static void touched_(int) { siglongjmp(outside_, 1); }
struct Watch {
    struct sigaction before[2];
    Watch() {
        struct sigaction mine = {};
        mine.sa_handler = touched_;
        sigaction(SIGSEGV, &mine, &before[0]), sigaction(SIGBUS, &mine, &before[1]);
    }
    ~Watch() { sigaction(SIGSEGV, &before[0], nullptr), sigaction(SIGBUS, &before[1], nullptr); }
};
int run_(const unsigned (&size)[6], bool turns, int cluster, void (*call)(const void*), const void* body) {
    cluster_ = cluster, do_ = call, body_ = body;
    gridDim.x = size[0], gridDim.y = size[1], gridDim.z = size[2];
    blockDim.x = size[3], blockDim.y = size[4], blockDim.z = size[5];
    const int threads = size[3] * size[4] * size[5] * cluster;
    const Watch watch;
    if (sigsetjmp(outside_, 1)) return turns_ = nullptr, 2;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x = (blockIdx.x / cluster + 1) * cluster) {
                forget_();
                for (Signal(&block)[64] : signals_)
                    for (Signal& its : block) its.count = its.expected = 0;
                for (int i = 0; i < threads; ++i) copies_[i].count = copies_[i].closed = queues_[i].count = queues_[i].closed = 0;
                if (turns && !in_turns_(threads)) return 1;
                for (int i = threads; !turns && i-- > 0;) let_(i), call(body);
            }
    return 0;
}
// mma.sync of 16 columns and 8 rows: tf32 has 8 steps, one a register, and float16 has 16, as bfloat16 (17) has.
static float step_(const unsigned (&registers)[4], int of, int i, int steps) {
    if (steps == 8) return same_bits<float>(registers[of] & 0xffffe000u);
    return short_((const char*)&registers[of] + 2 * i, steps == 17);
}
template <int STEPS> void multiply_(float (&sum)[4], uint4 columns, unsigned row0, unsigned row1) {
    static unsigned left[MOST_THREADS][4], right[MOST_THREADS][4];
    const unsigned mine[4] = {columns.x, columns.y, columns.z, columns.w}, rows[4] = {row0, row1};
    memcpy(left[current_], mine, 16), memcpy(right[current_], rows, 16);
    __syncwarp();
    const int first = current_ / 32 * 32, lane = current_ % 32;
    for (int e = 0; e < 4; ++e)
        for (int t = 0; t < 4; ++t)
            for (int far = 0; far < 2; ++far)
                for (int i = 0; i < STEPS / 8; ++i)
                    sum[e] += step_(left[first + lane / 4 * 4 + t], e / 2 + 2 * far, i, STEPS) *
                              step_(right[first + (lane % 4 * 2 + e % 2) * 4 + t], far, i, STEPS);
    __syncwarp();
}
template void multiply_<8>(float (&)[4], uint4, unsigned, unsigned);
template void multiply_<16>(float (&)[4], uint4, unsigned, unsigned);
template void multiply_<17>(float (&)[4], uint4, unsigned, unsigned);
// Four matrices of rows of 16 bytes, whose places the lanes say; each is given a word of each.
void load_matrices_(unsigned (&to)[4], const void* from) {
    static const void* rows[MOST_THREADS];
    rows[current_] = from;
    __syncwarp();
    const int first = current_ / 32 * 32, lane = current_ % 32;
    for (int j = 0; j < 4; ++j) memcpy(&to[j], (const char*)rows[first + j * 8 + lane / 4] + lane % 4 * 4, 4);
    __syncwarp();
}
unsigned long long host_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
#pragma GCC visibility pop
