import { BrowserAct, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../../../kernel/issues.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { BrowserMethods } from './methods.ts';

export const browserToolName = 'browser';

/** What a call does with the tab as a whole; every other action is a step of `browser.act`. */
const whole = ['navigate', 'snapshot', 'screenshot', 'tabs', 'open', 'focus', 'console', 'pdf'] as const;
const steps = [
  'click',
  'type',
  'press',
  'hover',
  'drag',
  'select',
  'fill',
  'scroll',
  'wait',
  'upload',
  'dialog',
  'back',
  'forward',
  'reload',
  'resize',
  'evaluate',
  'close',
] as const;

// Flat and without the bounds of the contract, which every step is parsed with: each character is part of every prompt.
const args = once(() =>
  z.strictObject({
    action: z.enum([...whole, ...steps]),
    tab: z.string().max(12).optional().describe('Id of a tab; the one in front otherwise.'),
    url: z.string().min(1).max(8192).optional().describe('navigate, open; wait: part of the address.'),
    ref: z.string().max(20).optional().describe('Element by its reference in the last snapshot, e.g. e12.'),
    endRef: z.string().max(20).optional().describe('drag: where to.'),
    text: z.string().max(16_384).optional().describe('type: the new content; wait: text to appear.'),
    secret: z.string().max(128).optional().describe('type: name of a stored secret instead of text.'),
    submit: z.boolean().optional().describe('type: press Enter afterwards.'),
    key: z.string().max(40).optional().describe('press: e.g. Enter, Control+A.'),
    values: z.array(z.string()).optional().describe('select.'),
    fields: z
      .array(
        z.strictObject({
          ref: z.string(),
          type: z.enum(['text', 'checkbox', 'radio', 'select']).optional(),
          value: z.union([z.string(), z.boolean()]),
        }),
      )
      .optional()
      .describe('fill: several fields at once.'),
    doubleClick: z.boolean().optional(),
    dx: z.number().optional(),
    dy: z.number().optional().describe('scroll: pixels down.'),
    textGone: z.string().optional().describe('wait.'),
    timeMs: z.number().optional().describe('wait.'),
    paths: z.array(z.string()).optional().describe('upload: files of the workspace.'),
    accept: z.boolean().optional().describe('dialog: OK or Cancel.'),
    promptText: z.string().optional(),
    expression: z.string().optional().describe('evaluate: JavaScript; needs an approval.'),
    width: z.number().optional(),
    height: z.number().optional(),
    interactive: z.boolean().optional().describe('snapshot: only what can be used.'),
    selector: z.string().max(1000).optional().describe('snapshot, screenshot, wait: CSS selector.'),
    fullPage: z.boolean().optional().describe('screenshot.'),
    snapshot: z.boolean().optional().describe('Also return the snapshot after the action.'),
  }),
);
type ToolArgs = z.output<ReturnType<typeof args>>;
type Action = ToolArgs['action'];

/** Complete calls only: nobody is asked to approve one that cannot be done. */
const toolArgs = once(() =>
  args().superRefine((call, context) => {
    const issue = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if (call.action === 'navigate' && call.url === undefined) issue('url', 'required for "navigate"');
    if (call.action === 'focus' && call.tab === undefined) issue('tab', 'required for "focus"');
    const step = parseStep(call);
    if (step?.success === false) issue('action', `${call.action}: ${sentenceOf(issuesOf(step.error))}`);
  }),
);

const isStep = (action: Action): action is (typeof steps)[number] => steps.some((step) => step === action);

/** Returns the step of `browser.act`; undefined for other actions. */
function parseStep({ action, tab: _tab, snapshot: _snapshot, interactive: _interactive, ref, ...rest }: ToolArgs) {
  if (!isStep(action)) return undefined;
  const element = ref === undefined ? {} : action === 'drag' ? { startRef: ref } : { ref };
  return BrowserAct().safeParse({ kind: action, ...element, ...rest });
}

export interface BrowserToolDeps {
  readonly methods: BrowserMethods;
  /** Stores a file of a page in the workspace, marked as from outside; returns its path. */
  readonly keepFile: (agentId: string, bytes: Buffer, extension: 'png' | 'jpg' | 'pdf') => Promise<string>;
}

const reading: ReadonlySet<Action> = new Set(['snapshot', 'screenshot', 'tabs', 'focus', 'console', 'pdf', 'wait']);
/** These carry nothing to the page that the model has read. */
const inert: ReadonlySet<Action> = new Set(['close', 'resize']);
/** Longer than any step and the start of a browser. */
const timeoutMs = 150_000;

/** Creates the tool with which an agent drives its browser. */
export function createBrowserTool({ methods, keepFile }: BrowserToolDeps): Tool<ReturnType<typeof toolArgs>> {
  return {
    name: browserToolName,
    description:
      'Drives a web browser that keeps its logins. "navigate", then "snapshot" to get references (e12) of what is on the page, then act on them; references hold until the next snapshot. Use "web_fetch", if you have it, for pages that only need reading.',
    get args() {
      return toolArgs();
    },
    risk: 'outward',
    effect: 'once',
    timeoutMs,
    capability: 'orch:web',
    // Its logins open what is its owner's.
    readsPrivate: true,
    onlyReads: ({ action }) => reading.has(action),
    destination: ({ action, url }) =>
      inert.has(action)
        ? { kind: 'configured' }
        : (action === 'navigate' || action === 'open') && url !== undefined
          ? { kind: 'address', url }
          : undefined,
    mustAsk: ({ action }) =>
      action === 'evaluate'
        ? 'the script runs in the page with its logins'
        : action === 'upload'
          ? 'files of the workspace leave the machine'
          : undefined,
    describe,
    async run(args, context) {
      // Messages of failed pages contain text of the page.
      const result = { ...(await act(args, context).catch(failed)), traced: { facts: { action: args.action } } };
      if (args.snapshot !== true || args.action === 'snapshot' || args.action === 'close' || result.isError === true) return result;
      const { isError: _, ...shown } = await snapshot(args, context).catch(failed);
      return { ...result, ...shown, content: `${result.content}\n\n${shown.content}` };
    },
  };

  async function snapshot({ tab, interactive, selector, action }: ToolArgs, { call }: ToolContext): Promise<ToolResult> {
    const wanted = { ...(interactive !== undefined && { interactive }), ...(action === 'snapshot' && selector !== undefined && { selector }) };
    // A tab that was opened is in front.
    const page = await methods['browser.snapshot']({ ...(action === 'open' ? {} : tabOf(tab)), ...wanted }, call);
    const notes = [
      ...(page.dialog === undefined ? [] : [`A dialog is open (${page.dialog.type}): ${page.dialog.message}`]),
      ...(page.truncated === true ? ['The snapshot was cut: name a selector, or ask for interactive elements only.'] : []),
    ];
    return outside(page.url, [stateOf(page), page.snapshot === '' ? '(empty page)' : page.snapshot, ...notes].join('\n'));
  }

  async function act(args: ToolArgs, context: ToolContext): Promise<ToolResult> {
    const { action, tab, url, ref, selector, fullPage } = args;
    const { call, agentId } = context;
    switch (action) {
      case 'navigate': {
        const page = await methods['browser.navigate']({ ...tabOf(tab), ...(url !== undefined && { url }) }, call);
        return outside(page.url, `${stateOf(page)}${page.status === undefined ? '' : ` (status ${page.status})`}`);
      }
      case 'open': {
        const page = await methods['browser.open']({ ...(url !== undefined && { url }) }, call);
        return outside(page.url, stateOf(page));
      }
      case 'snapshot':
        return snapshot(args, context);
      case 'screenshot': {
        const wanted = {
          ...(ref !== undefined && { ref }),
          ...(selector !== undefined && { element: selector }),
          ...(fullPage !== undefined && { fullPage }),
        };
        const { base64, mimeType, width, height } = await methods['browser.screenshot']({ ...tabOf(tab), ...wanted }, call);
        const path = await keepFile(agentId, Buffer.from(base64, 'base64'), mimeType === 'image/png' ? 'png' : 'jpg');
        return { content: `The picture is in the workspace: ${path} (${width}x${height})` };
      }
      case 'pdf': {
        const { base64 } = await methods['browser.pdf'](tabOf(tab), call);
        return { content: `The PDF file is in the workspace: ${await keepFile(agentId, Buffer.from(base64, 'base64'), 'pdf')}` };
      }
      case 'tabs': {
        const { tabs } = await methods['browser.tabs']({}, call);
        return tabs.length === 0
          ? { content: '(no tabs)' }
          : outside(undefined, tabs.map((one) => `${stateOf(one)}${one.active ? ' (in front)' : ''}`).join('\n'));
      }
      case 'focus': {
        const { tabId } = await methods['browser.focus'](tabOf(tab), call);
        return { content: `${tabId} is in front` };
      }
      case 'console': {
        const { entries } = await methods['browser.console'](tabOf(tab), call);
        const lines = entries.slice(-100).map(({ type, text, location }) => `${type}: ${text}${location === undefined ? '' : ` (${location})`}`);
        return lines.length === 0 ? { content: '(nothing)' } : outside(undefined, lines.join('\n'));
      }
      default:
        return step(args, call);
    }
  }

  async function step(args: ToolArgs, call: ToolContext['call']): Promise<ToolResult> {
    const kind = args.action;
    const request = parseStep(args);
    if (request?.success !== true) throw new TypeError('the arguments of a call are parsed');
    const {
      ok,
      error,
      url,
      value,
      dialog,
      note,
      downloads = [],
      tabId,
    } = await methods['browser.act']({ ...tabOf(args.tab), request: request.data }, call);
    const lines = [
      ok ? `${kind}: done` : `${kind} failed: ${error ?? 'the page did not do it'}`,
      ...(value === undefined ? [] : [value]),
      ...(note === undefined ? [] : [note]),
      ...(dialog === undefined ? [] : [`A dialog is open (${dialog.type}): ${dialog.message}`]),
      ...downloads.map(({ path, name, bytes, error: why }) =>
        path === undefined ? `Download of ${name} failed: ${why ?? 'unknown'}` : `Downloaded: ${path} (${bytes} bytes)`,
      ),
      ...(url === undefined ? [] : [`[${tabId ?? 'tab'}] ${url}`]),
    ];
    return { ...outside(url, lines.join('\n')), ...(!ok && { isError: true }) };
  }
}

const tabOf = (tab: string | undefined) => (tab === undefined ? {} : { tabId: tab });

function stateOf({ tabId, url, title }: { readonly tabId: string; readonly url: string; readonly title: string }): string {
  return `[${tabId}] ${url}${title === '' ? '' : ` ${JSON.stringify(title.slice(0, 200))}`}`;
}

function outside(url: string | undefined, content: string): ToolResult {
  const host = url === undefined ? '' : (URL.parse(url)?.host ?? '');
  return { content, outside: { source: host === '' ? 'web page' : `web page ${host}` } };
}

/** Refusals of the daemon's own are not text of a page. */
const own: ReadonlySet<string> = new Set(['invalid_params', 'conflict', 'internal', 'cancelled']);

function failed(error: unknown): ToolResult {
  if (!(error instanceof AppError) || own.has(error.code)) throw error;
  return { ...outside(undefined, error.message), isError: true };
}

function describe({ action, url, ref, endRef, text, secret, key, expression, paths, fields, values, tab }: ToolArgs): string {
  const what = [
    url,
    ref,
    endRef === undefined ? undefined : `to ${endRef}`,
    secret === undefined ? undefined : `the secret ${secret}`,
    text === undefined ? undefined : JSON.stringify(text),
    key,
    expression,
    paths?.join(', '),
    fields?.map((field) => `${field.ref}=${JSON.stringify(field.value)}`).join(' '),
    values?.join(', '),
  ].filter((part) => part !== undefined);
  return `${action} ${what.join(' ')}`.trim() + (tab === undefined ? '' : ` in ${tab}`);
}
