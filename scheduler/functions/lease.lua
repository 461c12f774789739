-- lease.lua - sessions and the jobs in their slots.
--
--   lease:<nonce>   s -> c|pool|job_ms|budgets[!shunned][|quiet]   without `s` it is gone
--                   0 -> q|family|lane|element|…    one field per slot
--
-- One HMGET answers whether the session lives, whether the call comes over its newest
-- connection, and what the slots hold.  lease_drop is the only way a lease lets go of its
-- lane and budget; give_back is the only way it returns its job to a list.

local job = {} -- what may happen to one job: to its lists, its history, its end
local ticket = {}

-- When a lease that starts now has its hard end, as text.
local function ends_text(session)
	if memo.ends_at ~= now or memo.ends_stay ~= session.stay then
		memo.ends_at, memo.ends_stay = now, session.stay
		memo.ends = format('%d', now + session.stay)
	end
	return memo.ends
end

-- The key of the table of the session that argv[2] names.
local function lease_key()
	local nonce = argv[2]
	local name = memo.lease[nonce]
	if not name then
		name = key.ns .. 'lease:' .. nonce_at(2)
		memo_grow()
		memo.lease[nonce] = name
	end
	return name
end

-- Parses what `s` holds; the same for every call of a connection.
local function session_parse(text)
	local session = memo.session[text]
	if not session then
		local c, pool, job_ms, names, shunned, manner =
			match(text, '^(%d+)|([^|]*)|(%d+)|([^|!]*)!?([^|]*)|?(.*)$')
		if not c then
			refuse('session', 'a record of another format: "' .. sub(text, 1, 80) .. '"')
		end
		session = { c = c, pool = pool, names = names, manner = manner, shunned = shunned,
			stay = min(DAY, (job_ms + 0) * 2 + 60000) }
		memo_grow()
		memo.session[text] = session
	end
	return session
end

-- Reads the session of argv[2], argv[3] and `slots` (n names) of its table.  Answers the
-- session and the table's values, or nil and the word that refuses the call.
local function session_read(name, slots, n)
	local got = call('HMGET', name, 's', unpack(slots, 1, n))
	if not got[1] then
		return nil, { 'GONE' }
	end
	local session = session_parse(got[1])
	if session.c ~= argv[3] then
		return nil, { 'STALE' }
	end
	return session, got
end

-- The whole table of a session as { slot, text } pairs in the order of slots.
local function table_read(name)
	local got = call('HGETALL', name)
	local rows, head = {}, nil
	for i = 1, #got, 2 do
		if got[i] == 's' then
			head = got[i + 1]
		else
			rows[#rows + 1] = { got[i], got[i + 1] }
		end
	end
	sort(rows, function(a, b)
		return a[1] + 0 < b[1] + 0
	end)
	return rows, head
end

-- ---- letting go --------------------------------------------------------------------

local function slot_free(name, slot)
	local freed = book.slots_gone
	local list = freed and freed[name]
	if not list then
		list = { name }
		note('slots_gone', list)
		book.slots_gone[name] = list
	end
	list[#list + 1] = slot
	recall.drop(name, slot)
end

-- Frees lane and budget.  refund: nil, 'tokens' or 'all'.  A credit comes back only for
-- what was never sent, was released, or lost its worker; not once its first event was
-- told, since the scheduler has elected the next one by then; and only under its own g.
local function lease_drop(lease, refund, credit)
	local lane = lane_of(lease.lane)
	lane_join(lane)
	lane.use = lane.use - 1
	if credit and not lease.begun and (lease.role == 'l' or lease.role == 'c') and
		not lane.missing and sub(lane.rec, 4, 13) + 0 == lease.g and
		not (marked > 0 and call('HGET', key.ended, lease.id)) then
		lane.rec = put(lane.rec, 14, 16, sub(lane.rec, 14, 16) + 1)
		lease.returned = true
	end
	if lane.tail.budget ~= '' then
		local budget = budget_of(lane.tail.budget)
		budget.flight = budget.flight - 1
		if refund then
			pacing.move(budget, refund == 'all' and 1 or 0, lease.input, lease.output)
		end
	end
	return lane
end

-- ---- tickets: none -> wanted(g) -> taken(g) -> ok | failed -------------------------

function ticket.finish(lease, lane, outcome, remark)
	local word = outcome == 3 and 'ok' or 'failed'
	if not lane.missing and sub(lane.rec, 4, 13) + 0 == lease.g and byte(lane.rec, 68) == 50 then
		local tail = lane.tail
		lane.rec = lane_print(sub(lane.rec, 1, 67) .. outcome .. sub(lane.rec, 69, 96),
			tail.pool, tail.budget, tail.family, tail.px, word .. ',' .. remark)
		lane.tail = lane_tail(lane.rec)
		set_del(key.tickets, lane.id)
	end
	say('ticket ' .. lane.id .. ' ' .. format('%d', lease.g) .. ' ' .. word .. ' ' .. remark)
end

-- Nobody has begun with it: whoever claims next takes it.
function ticket.want_again(lease, lane)
	if not lane.missing and sub(lane.rec, 4, 13) + 0 == lease.g and byte(lane.rec, 68) == 50 then
		local tail = lane.tail
		lane.rec = lane_print(sub(lane.rec, 1, 67) .. '1' .. sub(lane.rec, 69, 96),
			tail.pool, tail.budget, tail.family, tail.px, '')
		lane.tail = lane_tail(lane.rec)
	end
end

-- ---- back to the queue -------------------------------------------------------------

-- Ends after which a credit lies in its lane again.
job.returning = { released = true, unsent = true, worker_died = true, overdue = true }

-- Says that a start which is not plain did not lead to an end.
function job.say_back(lease, why)
	if job.returning[why] and (lease.begun or
		(lease.role == 'l' or lease.role == 'c') and not lease.returned) then
		why = 'failed' -- no credit lies in the lane again: it had begun, or g is another
	end
	if lease.role ~= 'p' and lease.role ~= 't' then
		say('back ' .. lease.lane .. ' ' .. lease.family .. ' ' .. format('%d', lease.g) .. ' ' ..
			lease.role .. ' ' .. why)
	end
end

-- The id has ended while it was leased: nothing is left but its mark.
function job.drop_ended(lease)
	note('marks_gone', lease.id)
	note('pasts_gone', key.ns .. 'past:' .. lease.id)
	job.say_back(lease, 'dropped')
end

function job.is_ended(id)
	return marked > 0 and call('HGET', key.ended, id)
end

-- The history a returning job carries from now on.
function job.past_take(lease)
	local past = past_of(lease.id)
	past.deliveries = max(past.deliveries, lease.delivery)
	past.family, past.element, past.band = lease.family, lease.element, lease.band
	past.now = lease.role == 'n' and '1' or ''
	past.dirty = true
	return past
end

-- The way to the dead letters of one whose place nobody knows.
function job.bury_lost(past, id, text)
	local kind = job.payload_kind(id)
	if kind then
		local reply, ref, trace = payload.hints(id, kind == 'slim')
		bury(past, id, kind == 'slim', 'lost', text)
		result_out(id, reply, DAY, end_result(id, 'dead', 'lost', text, ref, trace))
	end
end

-- Nobody knows the family of a job any more.  A whole one is read anew; the rest of a split
-- one only its family knew.
function job.place_anew(past)
	local id = past.id
	local kind = job.payload_kind(id)
	past.family = ''
	if kind == 'entry' and payload.to_slim(id) or kind == 'slim' and job.is_whole(id) then
		return job.decide_anew(past, id)
	end
	set_del(key.later, id)
	job.bury_lost(past, id,
		'its place in the queue was lost, and its prefix with it; send it again')
	return 'dead'
end

-- Its family, made anew from a lane (its first one, if none is at hand) if its record is
-- lost; nil if the job had to be placed anew.
function job.home(past, lane)
	local family = family_of(past.family)
	if family.tail.pool ~= '' or family_revive(family, lane or lane_of(past.family .. '.0')) then
		return family
	end
	job.place_anew(past)
end

local function push_back(family, past)
	if past.now == '1' then
		push(family, NOW, past.element, true)
	else
		push(family, BACK[BAND[past.band] or 2], past.element)
	end
end

-- Returns a job to its queue: behind those that wait, or before them all.
function job.push_back(past, lane)
	local family = job.home(past, lane)
	if family then
		push_back(family, past)
	end
end

local SLIM_AFTER = 60000 -- who waits longer leaves the stream, whose nodes it would pin

-- Out of the lists until `due`; who waits long leaves the stream as well.
function job.push_later(past, due, reason)
	if due - now > SLIM_AFTER and not element_is_slim(past.element) and
		payload.to_slim(past.id) then
		past.element = gsub(past.element, '^[^/]+', '%0~')
	end
	note('laters', format('%d', due), past.id)
	family_count(past.family, 1)
	past.reason, past.dirty = reason, true
end

-- Returns the job of a lease to its queue, unharmed.  `past` may have been changed
-- before; answers the word for fail.
function job.give_back(lease, lane, why)
	if job.is_ended(lease.id) then
		job.drop_ended(lease)
		return 'ended'
	end
	local past = job.past_take(lease)
	job.push_back(past, lane)
	job.say_back(lease, why)
	return 'back'
end

-- A worker died, or held a job for longer than any job may last.  Two such ends make a
-- suspect, of which a session holds one at a time; the next one is poison.
function job.give_back_recovered(lease, lane, why, counts)
	usage.spend(lease, why, '- - - - - - b=1')
	if lease.role == 't' then
		ticket.finish(lease, lane, 4, why)
		return
	end
	if job.is_ended(lease.id) then
		job.drop_ended(lease)
		return
	end
	local past = job.past_take(lease)
	if not counts then
		job.push_back(past, lane)
	elseif past.recoveries >= 2 then
		past.recoveries = past.recoveries + 1
		local reply, ref, trace = payload.hints(lease.id, lease.slim)
		local text = 'its worker died ' .. past.recoveries .. ' times'
		bury(past, lease.id, lease.slim, 'poison', text)
		result_out(lease.id, reply, DAY, end_result(lease.id, 'dead', 'poison', text, ref, trace))
	else
		past.recoveries = past.recoveries + 1
		count('recovered')
		job.push_back(past, lane)
	end
	job.say_back(lease, why)
end
