-- recall.lua - what the slots of a session hold, remembered between calls.
--
--   claim, settle ──► note      slot -> token number, id, where it came from
--   settle        ──► tables    instead of reading the lease back: nothing is more often asked
--   fail, release, bye, attach, reap ──► drop, forget
--
-- Only plain first deliveries whose payload is an entry are noted.  All writers of leases
-- stand in this library, so what is noted is true as long as nobody else has written: the
-- stamp tells.  It is moved by nearly every call, and recall.stamp follows; where the two
-- differ (another server has ruled meanwhile, a restore, somebody's hand), all is forgotten.
-- Forgetting is always right: the slow way reads.

do

local SLOTS_MAX = 20000 -- remembered before all is forgotten

-- The stamp has been moved by `step`, to n; nil: there is none any more.
function recall.moved(n)
	if not recall.stamp or not n or n ~= recall.stamp + step then
		recall.reset()
	end
	recall.stamp = n
end

-- False if somebody else has written.
function recall.stands()
	local text = quiet('GET', key.stamp)
	if recall.stamp and type(text) == 'string' and tonumber(text) == recall.stamp then
		return true
	end
	recall.reset()
	return false
end

function recall.forget(name)
	local own = recall.tables[name]
	if own then
		recall.size = recall.size - own.size
		recall.tables[name] = nil
	end
end

function recall.drop(name, slot)
	local own = recall.tables[name]
	if own and own.q[slot] then
		own.q[slot], own.id[slot], own.home[slot] = nil, nil, nil
		own.size, recall.size = own.size - 1, recall.size - 1
	end
end

function recall.note(name, session, slot, q, id, home)
	if recall.size >= SLOTS_MAX then
		recall.tables, recall.size = {}, 0
	end
	local own = recall.tables[name]
	if not own then
		own = { session = session, size = 0, q = {}, id = {}, home = {} }
		recall.tables[name] = own
	end
	if not own.q[slot] then
		own.size, recall.size = own.size + 1, recall.size + 1
	end
	own.session = session
	own.q[slot], own.id[slot], own.home[slot] = q, id, home
end

end
