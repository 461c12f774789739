"""proxy.py - stands between programs and Redis, counts round trips, and spoils some.

    client ──► [proxy: frames, counts, plan] ──► Redis
           ◄──                               ◄──

    with Proxy(tmp / "a.sock", tmp / "redis.sock") as proxy:
        proxy.at(17, "after", then=worker.kill)     # Redis has done it, nobody is told
        proxy.next("warmq_grant", "late")           # the next one of them

A round trip is one command; numbers count from 1 over all connections of a proxy.  What can
be done to number n:

    before   the command never reaches Redis; the connection is cut
    after    Redis runs it; its answer is lost with the connection
    half     one half of its answer arrives, then the connection is cut
    late     the connection is cut, and Redis runs the command only `trips` commands later,
             as if it had lain in the buffer of a dead socket
    slow     it waits for `seconds`, and all behind it on this connection
    swap     its answer waits until `trips` commands of others were answered
    freeze   nothing moves on any connection for `seconds`, and nobody is told

`then()` is called at that moment, in the proxy's thread, before anything else moves.
Subscribed connections are passed on as they are: what comes there answers no command."""

import asyncio
import collections
import threading

CHUNK = 1 << 16
ACTIONS = ("before", "after", "half", "late", "slow", "swap", "freeze")


def frame_end(data, at):
    """Where the RESP2 value that begins at `at` ends; -1 if it is not all there yet."""
    values = 1
    while values > 0:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return -1
        kind, at_next = data[at:at + 1], line_end + 2
        values -= 1
        if kind == b"*":
            values += max(0, int(data[at + 1:line_end]))
        elif kind == b"$":
            size = int(data[at + 1:line_end])
            at_next += size + 2 if size >= 0 else 0
            if at_next > len(data):
                return -1
        at = at_next
    return at


def command_of(frame):
    """The first two words of a command, for people: "FCALL warmq_claim"."""
    lines = frame[:400].split(b"\r\n")
    return b" ".join(lines[2:5:2]).decode(errors="replace")


class Trip:
    def __init__(self, action, then, trips, seconds):
        self.action, self.then = action, then
        self.trips, self.seconds = trips, seconds

    def call(self):
        if self.then:
            self.then()


class Wanted:
    def __init__(self, word, spared, trip):
        self.word, self.spared, self.trip = word, spared, trip


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy, client):
        self.proxy = proxy
        self.client_reader, self.client = client
        self.upstream = self.upstream_reader = None
        self.pending = collections.deque()  # what is to become of the next answers
        self.subscribed = False

    async def run(self):
        try:
            self.upstream_reader, self.upstream = await asyncio.open_unix_connection(
                self.proxy.upstream)
        except OSError:
            self.client.close()
            return
        tasks = [asyncio.ensure_future(self.commands()), asyncio.ensure_future(self.answers())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, OSError):
                    self.proxy.errors.append(result)
        finally:
            self.cut()

    def cut(self):
        for writer in (self.client, self.upstream):
            if writer:
                writer.transport.abort()

    async def frames(self, reader):
        data = b""
        while True:
            more = await reader.read(CHUNK)
            if not more:
                return
            data += more
            at = 0
            while at < len(data):
                end = frame_end(data, at)
                if end < 0:
                    break
                yield data[at:end]
                at = end
            data = data[at:]

    async def commands(self):
        async for frame in self.frames(self.client_reader):
            await self.proxy.flowing.wait()
            trip = self.proxy.count_trip(frame)
            if trip and trip.action == "freeze":
                trip.call()
                self.proxy.freeze(trip.seconds)
                await self.proxy.flowing.wait()
                trip = None
            if trip and trip.action == "slow":
                trip.call()
                await asyncio.sleep(trip.seconds)
                trip = None
            if trip and trip.action == "before":
                trip.call()
                return
            if trip and trip.action == "late":
                trip.call()
                self.proxy.keep_late(self, frame, trip)
                return
            if not self.subscribed:
                self.pending.append(trip)
            if frame[:40].upper().find(b"SUBSCRIBE") > 0:
                self.subscribed = True  # what comes behind the first answer answers nothing
            self.upstream.write(frame)
            await self.upstream.drain()

    async def answers(self):
        async for frame in self.frames(self.upstream_reader):
            await self.proxy.flowing.wait()
            trip = self.pending.popleft() if self.pending else None
            if trip and trip.action in ("after", "half"):
                trip.call()
                if trip.action == "half":
                    self.client.write(frame[:len(frame) // 2])
                    await self.client.drain()
                    self.client.close()
                return
            if trip and trip.action == "swap":
                trip.call()
                await self.proxy.until_trip(self.proxy.count + trip.trips, trip.seconds)
            self.client.write(frame)
            await self.client.drain()


class Proxy:
    def __init__(self, listen, upstream):
        self.listen, self.upstream = str(listen), str(upstream)
        self.count = 0
        self.last = ""  # the command of the trip that was spoilt last
        self.errors = []
        self.plan = {}
        self.wanted = collections.deque()
        self.done = []  # numbers of the plan that were met
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.ready = threading.Event()

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(120), "the proxy did not start"
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(120)
        assert not self.errors, self.errors

    def serve(self):
        self.loop.run_until_complete(self.serve_all())
        self.loop.close()

    async def serve_all(self):
        self.flowing, self.stopping = asyncio.Event(), asyncio.Event()
        self.counted = asyncio.Condition()
        self.flowing.set()
        self.tasks = set()
        server = await asyncio.start_unix_server(self.accept, self.listen)
        self.ready.set()
        await self.stopping.wait()
        server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def accept(self, reader, writer):
        self.spawn(Link(self, (reader, writer)).run())

    def count_trip(self, frame):
        self.count += 1
        trip = self.plan.pop(self.count, None)
        if not trip and self.wanted and self.wanted[0].word in command_of(frame):
            trip = self.next_trip()
        if trip:
            self.done.append(self.count)
            self.last = command_of(frame)
        self.spawn(self.tell_counted())
        return trip

    async def tell_counted(self):
        async with self.counted:
            self.counted.notify_all()

    async def until_trip(self, number, seconds):
        async def reached():
            async with self.counted:
                await self.counted.wait_for(lambda: self.count >= number)

        try:
            await asyncio.wait_for(reached(), seconds)
        except asyncio.TimeoutError:
            pass

    def freeze(self, seconds):
        self.flowing.clear()
        self.loop.call_later(seconds, self.flowing.set)

    def keep_late(self, link, frame, trip):
        upstream, reader = link.upstream, link.upstream_reader
        link.upstream = None  # it outlives its client
        number = self.count + trip.trips

        async def run_late():
            try:
                await self.until_trip(number, trip.seconds)
                upstream.write(frame)
                await upstream.drain()
                await asyncio.wait_for(reader.read(CHUNK), 5)
            except (OSError, asyncio.TimeoutError):
                pass
            finally:
                upstream.transport.abort()

        self.spawn(run_late())

    def at(self, number, action, then=None, trips=20, seconds=2):
        assert action in ACTIONS, action
        assert number > self.count, f"trip {number} is over"
        self.plan[number] = Trip(action, then, trips, seconds)

    def next_trip(self):
        wanted = self.wanted[0]
        wanted.spared -= 1
        return wanted.trip if wanted.spared < 0 and self.wanted.popleft() else None

    def next(self, word, action, spared=0, then=None, trips=20, seconds=2):
        """The next command with this word, when `spared` of them have gone by; a second call
        is for those behind it."""
        assert action in ACTIONS, action
        self.wanted.append(Wanted(word, spared, Trip(action, then, trips, seconds)))
