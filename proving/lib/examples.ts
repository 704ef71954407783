import { contract, type Method } from '@gatehouse/contract';
import * as z from 'zod';

const Params = z.record(z.string(), z.unknown());
const methods: Readonly<Record<string, Method>> = contract;

/**
 * Replaces examples that contain a foreign address by values that are refused before a name is looked up or anything is dialled,
 * and examples that name a job by the id of the job, so that a harness can replace it.
 */
const standIns: Readonly<Record<string, object>> = {
  'mcp.connect': { name: 'search', transport: 'http', url: 'http://127.0.0.1:9/mcp' },
  'cron.remove': { jobId: 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10' },
  'cron.update': { jobId: 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10', paused: true },
  'browser.navigate': { url: 'about:blank' },
  'browser.open': {},
  'media.test.link': { url: 'http://127.0.0.1:9/' },
  'image.analyze': { source_type: 'url', source: 'http://127.0.0.1:9/chart.png' },
  'skills.import': { url: 'https://git.example/ada/skills/tree/main/release-notes' },
};

/** Returns parameters of a method that a harness may really send: its first example, or a replacement for one that would reach out. */
export function exampleOf(name: string): object {
  const params = Params.parse(standIns[name] ?? methods[name]?.examples[0]?.params ?? {});
  if (standIns[name] === undefined && /https?:\/\//.test(JSON.stringify(params)))
    throw new Error(`the example of ${name} names an address: give it a stand-in in proving/lib/examples.ts`);
  return params;
}
