import { expect, test } from 'vitest';
import * as z from 'zod';
import { errorCatalogue } from './errors.ts';
import { events } from './events.ts';
import { routes } from './http/routes.ts';
import { standaloneSchema } from './json-schema.ts';
import { openApiDocument } from './openapi.ts';
import { openRpcDocument } from './openrpc.ts';
import { configReference, errorsReference, eventsReference, exitCodesReference, httpReference, rpcReference } from './reference-doc.ts';
import { contract } from './registry.ts';

const pages = {
  rpc: rpcReference(openRpcDocument({ version: '1.2.3' })),
  http: httpReference(openApiDocument({ version: '1.2.3' })),
  events: eventsReference(),
  errors: errorsReference(),
};

test('every method, route, event and error has its heading or row', () => {
  for (const name of Object.keys(contract)) expect(pages.rpc).toContain(`### \`${name}\`\n`);
  for (const route of Object.values(routes)) expect(pages.http).toContain(`### \`${route.method} ${route.path}\`\n`);
  for (const kind of Object.keys(events)) expect(pages.events).toContain(`### \`${kind}\`\n`);
  for (const code of Object.keys(errorCatalogue)) expect(pages.errors).toContain(`| \`${code}\` |`);
});

test.each(Object.entries(pages))('%s: every link into the page has a heading', (_name, text) => {
  const headings = new Set([...text.matchAll(/^#+ (.+)$/gm)].map((match) => match[1]?.toLowerCase()));
  const links = [...text.matchAll(/\]\(#([^)]+)\)/g)].map((match) => match[1]);
  expect(links.filter((link) => !headings.has(link))).toEqual([]);
});

test.each(Object.entries(pages))('%s: every table row has as many cells as its head', (_name, text) => {
  for (const block of text.split('\n\n').filter((part) => part.startsWith('|'))) {
    const widths = block
      .trim()
      .split('\n')
      .map((line) => line.replaceAll('\\|', '').split('|').length);
    expect(new Set(widths).size).toBe(1);
  }
});

test('the configuration page shows keys, defaults, how changes apply and what is secret', () => {
  const schema = z.strictObject({
    listener: z
      .strictObject({
        port: z.int().default(1).describe('Where it listens.'),
        key: z.string().meta({ secret: true }),
        limits: z.strictObject({ calls: z.int() }).meta({ 'x-gatehouse-apply': 'live' }),
      })
      .prefault({ key: 'x', limits: { calls: 1 } })
      .describe('The listener.'),
  });
  const page = configReference(standaloneSchema({ schema, side: 'input' }));
  expect(page).toContain('## `listener`\n\nThe listener.');
  expect(page).toContain('| `listener.port` | integer | `1` | restart | Where it listens. |');
  expect(page).toContain('| `listener.key` | string, required |  | restart |  Secret: redacted in every view. |');
  expect(page).toContain('| `listener.limits.calls` | integer, required |  | live |  |');
});

test('the exit code page lists every group', () => {
  const page = exitCodesReference([{ title: 'One', codes: [{ code: 3, text: 'Not there.' }] }]);
  expect(page).toContain('## One\n\n| Code | Meaning |\n| --- | --- |\n| 3 | Not there. |\n');
});
