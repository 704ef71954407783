import { type Client, PermissionError } from '@gatehouse/client';
import { usageError } from '../failure.ts';
import { idsIn, isShortId } from '../render/short-id.ts';

/** The lists in which ids are looked up, by prefix. */
const lists: Readonly<Record<string, readonly (readonly [method: string, params: object])[]>> = {
  cv: [['session.list', { allAgents: true, limit: 200 }]],
  sr: [['subagent.list', { recentMinutes: 1440 }]],
  root: [['run.list', { limit: 200 }]],
  gr: [
    ['graph.status', {}],
    ['graph.runs', {}],
    ['graph.list', {}],
  ],
  ap: [['admin.approval.pending', {}]],
  cj: [['cron.list', { limit: 200 }]],
  wd: [['webhooks.deliveries', { limit: 100 }]],
  in: [['inbox.list', { limit: 100 }]],
};

/** Accepts the short ids that tables show on a terminal, wherever a call takes an id. */
export function withShortIds(client: Client): Client {
  async function resolveText(text: string): Promise<string> {
    const found = new Set<string>();
    for (const [method, params] of lists[/^[a-z]+/.exec(text)?.[0] ?? ''] ?? []) {
      // A list that the token may not read finds nothing; the call itself then says what is wrong.
      const listed = await client.callByName(method, params).catch((error: unknown) => {
        if (error instanceof PermissionError) return undefined;
        throw error;
      });
      for (const id of idsIn(listed, text)) found.add(id);
    }
    if (found.size > 1) throw usageError(`${text} is ambiguous: ${[...found].join(', ')}.`);
    return [...found][0] ?? text;
  }

  async function resolved(params: object): Promise<object> {
    const entries: [string, unknown][] = [];
    for (const [name, value] of Object.entries(params)) {
      if (typeof value === 'string') entries.push([name, isShortId(value) ? await resolveText(value) : value]);
      else if (Array.isArray(value) && value.some((one) => typeof one === 'string' && isShortId(one))) {
        const list: unknown[] = [];
        for (const one of value) list.push(typeof one === 'string' && isShortId(one) ? await resolveText(one) : one);
        entries.push([name, list]);
      } else entries.push([name, value]);
    }
    return Object.fromEntries(entries);
  }

  const needsLookup = (params: object) =>
    Object.values(params).some((value) => [value].flat().some((one) => typeof one === 'string' && isShortId(one)));

  const callByName: Client['callByName'] = async (method, params = {}, options) =>
    await client.callByName(method, needsLookup(params) ? await resolved(params) : params, options);
  // The result has the type of the method: only ids of the parameters change.
  return { ...client, callByName, call: callByName as Client['call'] };
}
