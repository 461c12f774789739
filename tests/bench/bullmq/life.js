// life.js - BullMQ's whole life of a no-op job: addBulk, a worker with 50 at once, done.
//
//   node life.js SOCKET JOBS
//
// The same 200-byte payload as bench_queue.c, the same rounds: add a chunk, run it dry.
// Prints one line of JSON like bench_queue.

'use strict'

const { Queue, Worker } = require('bullmq')
const Redis = require('ioredis')

const CHUNK = 10000
const BULK = 1000
const CONCURRENCY = 50

function cpuSeconds(info) {
  const number = (name) => Number(info.match(new RegExp(name + ':([0-9.]+)'))[1])
  return number('used_cpu_sys') + number('used_cpu_user')
}

async function main() {
  const [socket, count] = [process.argv[2], Number(process.argv[3])]
  if (!socket || !(count > 0) || count % CHUNK !== 0) {
    console.error(`usage: node life.js SOCKET JOBS (a multiple of ${CHUNK})`)
    process.exit(2)
  }
  const connection = { path: socket, maxRetriesPerRequest: null }
  const redis = new Redis(connection)
  const queue = new Queue('bench', { connection })
  const total = count + CHUNK // the first chunk warms up
  const seen = new Uint8Array(total)
  let done = 0, twice = 0, wanted = 0, reached = () => {}
  const worker = new Worker('bench', async (job) => {
    twice += seen[job.data.serial]
    seen[job.data.serial] = 1
    return job.data.serial
  }, { connection, concurrency: CONCURRENCY })
  worker.on('completed', () => { if (++done === wanted) reached() })
  const body = 'x'.repeat(180)

  async function round(from) {
    wanted = from + CHUNK
    const all = new Promise((resolve) => { reached = resolve })
    for (let at = from; at < wanted; at += BULK) {
      const jobs = []
      for (let serial = at; serial < at + BULK; serial++) {
        jobs.push({
          name: 'job',
          data: { serial, body },
          opts: { removeOnComplete: true, removeOnFail: true },
        })
      }
      await queue.addBulk(jobs)
    }
    if (done < wanted) await all
  }

  await round(0)
  const cpu = cpuSeconds(await redis.info('cpu'))
  const start = process.hrtime.bigint()
  for (let from = CHUNK; from < total; from += CHUNK) await round(from)
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  const spent = cpuSeconds(await redis.info('cpu')) - cpu
  const once = seen.reduce((sum, value) => sum + value, 0)
  console.log(JSON.stringify({
    mode: 'bullmq', jobs: count, jobs_per_s: Math.round(count / seconds),
    cpu_us: Number((spent * 1e6 / count).toFixed(2)),
    once, twice, missing: total - once, strange: 0,
  }))
  await worker.close()
  await queue.close()
  redis.disconnect()
}

main()
