import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { BrowserAct, BrowserRef } from '../shared/browser-act.ts';
import { AgentId } from '../shared/session.ts';

const agentId = () => AgentId.optional().describe('The agent whose browser it is; the default agent otherwise.');
const tabOf = () => z.string().regex(/^t\d{1,9}$/, 'expected the id of a tab, such as t1');
const tab = () => ({
  agentId: agentId(),
  tabId: tabOf().optional().describe('The tab; that in front otherwise.'),
  targetId: tabOf().optional().describe('Another name of `tabId`.'),
});
const address = () => z.string().min(1).max(8192);

/** Both names of a tab and of its address: those of the specification, and those that older clients read. */
const page = () => ({
  tabId: tabOf(),
  targetId: tabOf().describe('Same as `tabId`.'),
  url: z.string(),
  targetUrl: z.string().describe('Same as `url`.'),
  title: z.string(),
});
const Tab = once(() => z.strictObject({ ...page(), type: z.literal('page'), active: z.boolean().describe('In front.') }).meta({ id: 'BrowserTab' }));
export type BrowserTab = z.output<ReturnType<typeof Tab>>;

const Entry = once(() =>
  z
    .strictObject({
      type: z.enum(['debug', 'log', 'info', 'warning', 'error']),
      text: z.string().max(4096),
      timestamp: z.iso.datetime(),
      location: z.string().optional().describe('`url:line:column`.'),
    })
    .meta({ id: 'BrowserConsoleEntry' }),
);
export type BrowserConsoleEntry = z.output<ReturnType<typeof Entry>>;

const data = () => ({ base64: z.string(), data: z.string().describe('Same as `base64`.') });

/** Why a call may fail in addition: no browser, a refused address, a page that hangs, a tab or reference that is gone. */
const failures = ['not_found', 'precondition_failed', 'unavailable', 'denied', 'timeout', 'conflict'] as const;

const shop = { tabId: 't1', targetId: 't1', url: 'https://shop.example/', targetUrl: 'https://shop.example/', title: 'Shop' };

/** The browser of an agent: one Chromium in the jail, whose requests leave through the guarded proxy. */
export const browser = {
  'browser.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns whether the browser of an agent runs, the address in front and the number of tabs.',
    params: () => z.strictObject({ agentId: agentId() }),
    result: () =>
      z.strictObject({
        running: z.boolean(),
        connected: z.boolean().describe('Same as `running`.'),
        available: z.boolean().describe('Whether a browser could be started here.'),
        reason: z.string().optional().describe('Why not, and what helps.'),
        chromeVersion: z.string().optional(),
        cdpPort: z.null().describe('Always null: the browser is driven through a pipe and listens nowhere.'),
        tabCount: z.int().min(0),
        activeTabs: z.int().min(0).describe('Same as `tabCount`.'),
        url: z.string().optional(),
        targetUrl: z.string().optional().describe('Same as `url`.'),
        held: z.boolean().describe('Whether a person has taken over: steps of the agent wait or fail meanwhile.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: { running: false, connected: false, available: true, cdpPort: null, tabCount: 0, activeTabs: 0, held: false },
      },
    ],
    since: '0.1.0',
  }),
  'browser.start': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Starts the browser of an agent; changes nothing when it runs.',
    params: () => z.strictObject({ agentId: agentId() }),
    result: () => z.strictObject({ started: z.literal(true) }),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [{ params: {}, result: { started: true } }],
    since: '0.1.0',
  }),
  'browser.stop': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Ends the browser of an agent; its logins are kept for the next start.',
    params: () =>
      z.strictObject({
        agentId: agentId(),
        forget: z.boolean().default(false).describe('Also deletes cookies and storage: the agent is logged out everywhere.'),
      }),
    result: () => z.strictObject({ stopped: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: {}, result: { stopped: true } }],
    since: '0.1.0',
  }),
  'browser.navigate': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Opens an address in a tab and waits until its document is loaded.',
    description: 'Only http, https and about:blank; private addresses are refused, after redirects too. Starts the browser when it does not run.',
    params: () => z.strictObject({ ...tab(), url: address().optional(), targetUrl: address().optional().describe('Another name of `url`.') }),
    result: () => z.strictObject({ ...page(), status: z.int().optional().describe('HTTP status of the document.') }),
    errors: [...failures, 'invalid_params'],
    examples: [{ params: { url: 'https://shop.example/' }, result: { ...shop, status: 200 } }],
    since: '0.1.0',
  }),
  'browser.snapshot': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the accessibility tree of a tab as text, with references for `browser.act`.',
    params: () =>
      z.strictObject({
        ...tab(),
        interactive: z.boolean().optional().describe('Only what can be used, as a flat list.'),
        compact: z.boolean().optional().describe('Without branches that have neither text nor a reference.'),
        depth: z.int().min(1).max(100).optional(),
        selector: z.string().min(1).max(1000).optional().describe('A CSS selector: only this part of the page.'),
        maxChars: z.int().min(200).max(200_000).optional().describe('30000 by default.'),
      }),
    result: () =>
      z.strictObject({
        ...page(),
        snapshot: z.string(),
        refs: z.record(z.string(), z.strictObject({ role: z.string(), name: z.string().optional(), nth: z.int().optional() })),
        truncated: z.boolean().optional(),
        stats: z.strictObject({ lines: z.int(), chars: z.int(), refs: z.int(), interactive: z.int() }),
        dialog: z.strictObject({ type: z.string(), message: z.string() }).optional().describe('The dialog that the tab shows; answer it first.'),
      }),
    errors: [...failures, 'invalid_params'],
    examples: [
      {
        params: { interactive: true },
        result: {
          ...shop,
          snapshot: '- link "Cart" [ref=e2]',
          refs: { e2: { role: 'link', name: 'Cart' } },
          stats: { lines: 1, chars: 22, refs: 1, interactive: 1 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'browser.screenshot': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns a picture of a tab or of an element, at most 2000 pixels wide and high; typed secrets are covered.',
    params: () =>
      z.strictObject({
        ...tab(),
        fullPage: z.boolean().optional(),
        ref: BrowserRef().optional(),
        element: z.string().min(1).max(1000).optional().describe('A CSS selector.'),
        type: z.enum(['png', 'jpeg']).optional(),
      }),
    result: () => z.strictObject({ ...data(), mimeType: z.enum(['image/png', 'image/jpeg']), width: z.int(), height: z.int() }),
    errors: [...failures, 'invalid_params'],
    examples: [{ params: {}, result: { base64: 'iVBORw==', data: 'iVBORw==', mimeType: 'image/png', width: 1280, height: 720 } }],
    since: '0.1.0',
  }),
  'browser.pdf': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Prints a tab to a PDF file.',
    params: () => z.strictObject(tab()),
    result: () => z.strictObject({ ...data(), mimeType: z.literal('application/pdf') }),
    errors: [...failures, 'payload_too_large'],
    examples: [{ params: {}, result: { base64: 'JVBERg==', data: 'JVBERg==', mimeType: 'application/pdf' } }],
    since: '0.1.0',
  }),
  'browser.act': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Does one step in a tab; a step that fails returns `ok: false` with the reason.',
    description: '`evaluate` needs a token of scope `admin`, or an approval when an agent asks for it.',
    params: () => z.strictObject({ ...tab(), request: BrowserAct() }),
    result: () =>
      z.strictObject({
        ok: z.boolean(),
        action: z.string(),
        error: z.string().optional(),
        tabId: tabOf().optional(),
        targetId: tabOf().optional(),
        url: z.string().optional().describe('Address of the tab after the step.'),
        targetUrl: z.string().optional(),
        note: z.string().optional().describe('What else happened, such as a tab that was opened.'),
        value: z.string().optional().describe('Result of `evaluate` as JSON, at most 30000 characters.'),
        dialog: z.strictObject({ type: z.string(), message: z.string() }).optional().describe('The dialog that the step opened.'),
        downloads: z
          .array(z.strictObject({ path: z.string().optional(), name: z.string(), bytes: z.int(), error: z.string().optional() }))
          .optional(),
      }),
    errors: [...failures, 'invalid_params'],
    examples: [
      {
        params: { request: { kind: 'click', ref: 'e2' } },
        result: { ok: true, action: 'click', tabId: 't1', targetId: 't1', url: 'https://shop.example/cart', targetUrl: 'https://shop.example/cart' },
      },
      {
        params: { request: { kind: 'hover', ref: 'e9' } },
        result: { ok: false, action: 'hover', error: 'There is no e9 in the last snapshot: take a new one' },
      },
    ],
    since: '0.1.0',
  }),
  'browser.tabs': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the tabs; none when the browser does not run.',
    params: () => z.strictObject({ agentId: agentId() }),
    result: () => z.strictObject({ tabs: z.array(Tab()) }),
    errors: ['not_found'],
    examples: [{ params: {}, result: { tabs: [{ ...shop, type: 'page', active: true }] } }],
    since: '0.1.0',
  }),
  'browser.open': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Opens a tab, with an address if given, and puts it in front.',
    params: () =>
      z.strictObject({ agentId: agentId(), url: address().optional(), targetUrl: address().optional().describe('Another name of `url`.') }),
    result: () => Tab(),
    errors: [...failures, 'invalid_params'],
    examples: [{ params: { url: 'https://shop.example/' }, result: { ...shop, type: 'page', active: true } }],
    since: '0.1.0',
  }),
  'browser.focus': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Puts a tab in front.',
    params: () => z.strictObject(tab()),
    result: () => z.strictObject({ focused: z.literal(true), tabId: tabOf(), targetId: tabOf() }),
    errors: [...failures, 'invalid_params'],
    examples: [{ params: { tabId: 't1' }, result: { focused: true, tabId: 't1', targetId: 't1' } }],
    since: '0.1.0',
  }),
  'browser.close': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Closes a tab: the one in front when none is named.',
    params: () => z.strictObject(tab()),
    result: () => z.strictObject({ closed: z.literal(true) }),
    errors: [...failures],
    examples: [{ params: { tabId: 't1' }, result: { closed: true } }],
    since: '0.1.0',
  }),
  'browser.console': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns what pages wrote to the console since the browser started: the last 500 entries of a tab.',
    params: () =>
      z.strictObject({ ...tab(), level: z.enum(['debug', 'log', 'info', 'warning', 'error']).optional().describe('Least severe level.') }),
    result: () => z.strictObject({ entries: z.array(Entry()), messages: z.array(Entry()).describe('Same as `entries`.') }),
    errors: [...failures],
    examples: [{ params: {}, result: { entries: [], messages: [] } }],
    since: '0.1.0',
  }),
  'browser.view': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the current picture of the tab in front, for a person who watches.',
    params: () =>
      z.strictObject({
        agentId: agentId(),
        after: z.int().min(0).optional().describe('Version that the caller has: without a newer one, the answer has no picture.'),
        waitMs: z.int().min(0).max(10_000).default(0).describe('With `after`: how long to wait for a newer version, in milliseconds.'),
      }),
    result: () =>
      z.strictObject({
        version: z.int().min(0),
        width: z.int().min(1).describe('Width of the page in CSS pixels, to which coordinates refer.'),
        height: z.int().min(1),
        ...page(),
        held: z.boolean(),
        jpeg: z.string().optional().describe('As base64; absent when unchanged.'),
      }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'timeout'],
    examples: [{ params: {}, result: { version: 1, width: 1280, height: 720, ...shop, held: false, jpeg: '/9j/' } }],
    since: '0.1.0',
  }),
  'browser.take_over': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Takes the browser over from the agent, or returns it: for logins and captchas that a person solves.',
    description: 'Ends on its own when nobody has watched for five minutes.',
    params: () => z.strictObject({ agentId: agentId(), held: z.boolean() }),
    result: () => z.strictObject({ held: z.boolean() }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { held: true }, result: { held: true } }],
    since: '0.1.0',
  }),
  'browser.input': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Clicks, types or scrolls in the tab in front as a person who has taken over.',
    params: () =>
      z.strictObject({
        agentId: agentId(),
        events: z
          .array(
            z.discriminatedUnion('type', [
              z.strictObject({ type: z.literal('click'), x: z.number().min(0), y: z.number().min(0), clicks: z.int().min(1).max(3).default(1) }),
              z.strictObject({ type: z.literal('move'), x: z.number().min(0), y: z.number().min(0) }),
              z.strictObject({ type: z.literal('scroll'), x: z.number().min(0), y: z.number().min(0), dx: z.number(), dy: z.number() }),
              z.strictObject({ type: z.literal('text'), text: z.string().min(1).max(4096) }),
              z.strictObject({ type: z.literal('key'), key: z.string().min(1).max(40) }),
            ]),
          )
          .min(1)
          .max(100),
      }),
    result: () => z.strictObject({ done: z.int().min(0).describe('Events that were delivered.') }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'timeout'],
    examples: [{ params: { events: [{ type: 'click', x: 10, y: 20 }] }, result: { done: 1 } }],
    since: '0.1.0',
  }),
};
