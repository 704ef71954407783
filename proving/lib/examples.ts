import { contract, type Method } from '@gatehouse/contract';
import * as z from 'zod';

const Params = z.record(z.string(), z.unknown());
const methods: Readonly<Record<string, Method>> = contract;

/**
 * In the place of examples that name somebody else's address: what is refused before a name is looked up or anything is dialled.
 * And of those that name a job by its name: by its id, so that a harness can put another one there.
 */
const standIns: Readonly<Record<string, object>> = {
  'mcp.connect': { name: 'search', transport: 'http', url: 'http://127.0.0.1:9/mcp' },
  'cron.remove': { jobId: 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10' },
  'cron.update': { jobId: 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10', paused: true },
  'skills.import': { url: 'https://git.example/ada/skills/tree/main/release-notes' },
};

/** Parameters of a method that a harness may really send: its first example, or what stands in for one that would reach out. */
export function exampleOf(name: string): object {
  const params = Params.parse(standIns[name] ?? methods[name]?.examples[0]?.params ?? {});
  if (standIns[name] === undefined && /https?:\/\//.test(JSON.stringify(params)))
    throw new Error(`the example of ${name} names an address: give it a stand-in in proving/lib/examples.ts`);
  return params;
}
