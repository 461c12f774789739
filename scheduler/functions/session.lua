-- session.lua - a worker's life: hello, attach, beat, steer, bye.
--
--   hello ─► lives ── beat ──► … ── bye ─► gone
--            │   ▲ │ deadline passed          ▲
--      steer │   │ └──► dying ── reap ────────┘
--            ▼   │
--     quiet, stop: it gets nothing more, and hears so by its next beat
--
-- A session is a random nonce and a connection number c, which attach raises: calls over
-- an older connection are STALE even if Redis reads them later.  One deadline per session
-- stands in one sorted set, so a beat costs the same for one slot and for a thousand.

local sessions = {} -- empty, forget, check, release
do

-- Frees every lease of a table: `each` says what becomes of the job.
function sessions.empty(name, rows, each)
	marked = call('HLEN', key.ended)
	local leases = {}
	for i = 1, #rows do
		leases[i] = lease_parse(rows[i][2])
		leases[i].slot = rows[i][1]
	end
	sort(leases, function(a, b) -- back in the order in which they came
		return id_before(a.id, b.id)
	end)
	for i = 1, #leases do
		each(leases[i])
		slot_free(name, leases[i].slot)
	end
end

function sessions.release(lease, sent, why)
	local lane = lease_drop(lease, not sent and 'all', true)
	if lease.role == 't' and lease.begun then
		ticket.finish(lease, lane, 4, why)
	elseif lease.role == 't' then
		ticket.want_again(lease, lane)
	else
		job.give_back(lease, lane, why)
	end
end

function sessions.forget(nonce)
	call('ZREM', key.workers, nonce)
	call('ZREM', key.dying, nonce)
	call('ZREM', key.ends, nonce)
	recall.forget(key.ns .. 'lease:' .. nonce)
	call('DEL', key.ns .. 'lease:' .. nonce, key.ns .. 'session:' .. nonce)
end

function sessions.check()
	call('ZCARD', key.workers)
	call('ZCARD', key.dying)
	call('ZCARD', key.ends)
end

-- What a session is told beside its jobs; '' as usual.
local MANNERS = { run = '', quiet = '|quiet', stop = '|stop' }

-- hello nonce label pool slots budgets lease_ms replaces [job_ms] [manner]
local function hello()
	local nonce, label, pool = nonce_at(2), text_at(3, 'label'), text_at(4, 'pool')
	local slots, names = number_at(5, 'slots', 65536), text_at(6, 'budgets')
	local lease_ms, replaces = number_at(7, 'lease_ms', DAY), text_at(8, 'replaces')
	local job_ms = argv[9] and number_at(9, 'job_ms') or 0
	job_ms = job_ms > 0 and job_ms or DAY
	local manner = MANNERS[argv[10] or 'run'] or
		refuse('manner', 'expected run, quiet or stop')
	if find(names, '[|!]') then
		refuse('budgets', 'expected names without | and !')
	end
	if not is_name(pool) then
		refuse('pool', 'expected 1 to 128 of A-Z a-z 0-9 . _ -')
	end
	if replaces ~= '' then
		nonce_at(8)
	end
	local name = key.ns .. 'lease:' .. nonce
	sessions.check()
	if call('EXISTS', name) == 1 or call('ZSCORE', key.dying, nonce) then
		return { 'GONE' }
	end
	call('HGET', key.idle, pool)
	local old = replaces ~= '' and replaces ~= nonce and key.ns .. 'lease:' .. replaces
	if old then
		level = true
		sessions.empty(old, table_read(old), function(lease)
			job.give_back_recovered(lease, lease_drop(lease, nil, true), 'worker_died', true)
		end)
		say('bye ' .. replaces)
	end
	book_check()

	book_store()
	if old then
		sessions.forget(replaces)
	end
	call('ZADD', key.workers, now + lease_ms, nonce)
	recall.forget(name)
	call('HSET', name, 's', '1|' .. pool .. '|' .. format('%d', job_ms) .. '|' .. names ..
		manner)
	call('HSET', key.ns .. 'session:' .. nonce, 'label', sub(label, 1, 200), 'slots', slots,
		'since', format('%d', now))
	say('hello ' .. nonce .. ' ' .. pool .. ' ' .. slots)
	if manner ~= '' then
		say('steer ' .. nonce .. ' ' .. sub(manner, 2) .. ' ')
	end
	deliver()
	return { 'OK', now, 1 }
end

-- attach nonce lease_ms
local function attach()
	local nonce, lease_ms = nonce_at(2), number_at(3, 'lease_ms', DAY)
	local name = key.ns .. 'lease:' .. nonce
	local rows, head = table_read(name)
	call('ZCARD', key.workers)
	if not head then
		return { 'GONE' }
	end
	local session = session_parse(head)
	local c = format('%d', session.c + 1)

	recall.forget(name)
	call('HSET', name, 's', c .. sub(head, #session.c + 1))
	call('ZADD', key.workers, now + lease_ms, nonce)
	local answer = { 'OK', now, c + 0 }
	for i = 1, #rows do
		answer[i + 3] = rows[i]
	end
	return answer
end

local BITS = { quiet = 2, stop = 4 } -- of the answer to a beat; 1: holding is on

-- The head of a session's table with other words for what it shuns.
local function head_shunning(head, shunned)
	local front, back = match(head, '^(%d+|[^|]*|%d+|[^|!]*)[^|]*(.*)$')
	return front .. (shunned == '' and '' or '!' .. shunned) .. back
end

-- beat nonce c busy lease_ms [shunned]
local function beat()
	local nonce, busy = nonce_at(2), number_at(4, 'busy')
	local lease_ms, shunned = number_at(5, 'lease_ms', DAY), argv[6]
	if shunned and find(shunned, '[^%w._,-]') then
		refuse('shunned', 'expected names of upstreams, with commas')
	end
	local name, own = key.ns .. 'lease:' .. nonce, key.ns .. 'session:' .. nonce
	local rows, head = table_read(name)
	if not head then
		return { 'GONE' }
	end
	local session = session_parse(head)
	if session.c ~= argv[3] then
		return { 'STALE' }
	end
	local differs = call('HGET', own, 'differs') == '1'
	local answer = { 'OK', now, (call('HGET', key.meta, 'hold') == 'off' and 0 or 1) +
		(BITS[session.manner] or 0) }
	local ends, ids = NEVER, {}
	sessions.check()
	for i = 1, #rows do
		local lease = lease_parse(rows[i][2])
		ends = min(ends, lease.ends)
		ids[i] = lease.id
	end
	if #rows > 0 and call('HLEN', key.ended) > 0 then
		local reasons = call('HMGET', key.ended, unpack(ids))
		for i = 1, #rows do
			if reasons[i] then
				answer[#answer + 1] = rows[i][1]
			end
		end
	end

	call('ZADD', key.workers, now + lease_ms, nonce)
	if shunned and shunned ~= session.shunned then
		recall.forget(name)
		call('HSET', name, 's', head_shunning(head, shunned))
	end
	if ends < NEVER then
		call('ZADD', key.ends, ends, nonce)
	else
		call('ZREM', key.ends, nonce)
	end
	if busy == #rows then
		if differs then
			call('HDEL', own, 'differs')
		end
		return answer
	end
	if not differs then
		call('HSET', own, 'differs', '1')
		return answer
	end
	call('HDEL', own, 'differs')
	return { 'REATTACH' }
end

-- steer nonce run|quiet|stop [who]
local function steer()
	local nonce, word, who = nonce_at(2), text_at(3, 'word'), argv[4] or ''
	local manner = MANNERS[word] or
		refuse('word', 'expected run, quiet or stop, got "' .. sub(word, 1, 40) .. '"')
	local name = key.ns .. 'lease:' .. nonce
	local head = call('HGET', name, 's')
	if not head then
		return { 'OK', now, 'gone' }
	end
	local session = session_parse(head)

	recall.forget(name)
	call('HSET', name, 's', match(head, '^%d+|[^|]*|%d+|[^|]*') .. manner)
	say('steer ' .. nonce .. ' ' .. word .. ' ' .. sub(gsub(who, '[%c ]', '_'), 1, 100))
	if manner == '' then
		wake(session.pool)
	end
	deliver()
	return { 'OK', now, 'done' }
end

-- bye nonce c
local function bye()
	local nonce = nonce_at(2)
	local name = key.ns .. 'lease:' .. nonce
	local rows, head = table_read(name)
	if not head then
		return { 'GONE' }
	end
	if session_parse(head).c ~= text_at(3, 'c') then
		return { 'STALE' }
	end
	sessions.check()
	sessions.empty(name, rows, function(lease)
		sessions.release(lease, true, 'released')
	end)
	book_check()

	book_store()
	sessions.forget(nonce)
	say('bye ' .. nonce)
	deliver()
	return { 'OK', now }
end

register('hello', hello)
register('attach', attach)
register('beat', beat)
register('steer', steer)
register('bye', bye)

end
