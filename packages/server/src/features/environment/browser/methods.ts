import type { BrowserAct, Params } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Core } from '../../../kernel/core.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { BrowserSession, Browsers } from './api.ts';
import type { BrowserConfig } from './config.ts';
import { describeAct, type Recorder, type StepToRecord } from './recording/recorder.ts';

export interface BrowserMethodsDeps extends Pick<Core, 'db' | 'bus' | 'clock'> {
  readonly config: Live<BrowserConfig>;
  readonly agents: Pick<AgentsApi, 'usable' | 'find'>;
  /** The agent of calls that name none. */
  readonly defaultAgentOf: (call: CallContext) => string;
  readonly browsers: Browsers;
  readonly recorder: Pick<Recorder, 'step'>;
  readonly hideSecrets: (text: string) => string;
}

type Steps = 'navigate' | 'snapshot' | 'screenshot' | 'pdf' | 'act' | 'tabs' | 'open' | 'focus' | 'close' | 'console';
export type BrowserMethods = HandlersOf<`browser.${Steps | 'status' | 'start' | 'stop' | 'view' | 'take_over' | 'input'}`>;

interface NamedTab {
  readonly tabId?: string | undefined;
  readonly targetId?: string | undefined;
}
interface NamedUrl {
  readonly url?: string | undefined;
  readonly targetUrl?: string | undefined;
}

/** Longest wait of an agent's step for a person who has taken over. */
const heldWaitMs = 100_000;
const off = 'Browsers are switched off (browser.enabled)';

/** The browsers of agents for callers: which agent, who may, and what is recorded; the rest is the engine's. */
export function createBrowserMethods(deps: BrowserMethodsDeps): BrowserMethods {
  const { agents, browsers, config, recorder } = deps;

  const idOf = (agentId: string | undefined, call: CallContext): string => call.agentCaller?.agentId ?? agentId ?? deps.defaultAgentOf(call);
  const agentOf = (agentId: string | undefined, call: CallContext): Agent => agents.usable(idOf(agentId, call), call);

  /** A suspended agent too. */
  function knownAgent(agentId: string | undefined, call: CallContext): Agent {
    const found = agents.find(idOf(agentId, call));
    const isSuspended = found?.suspended === true && (call.identity.agents?.includes(found.id) ?? true);
    return isSuspended ? found : agentOf(agentId, call);
  }

  /** Starts it when it does not run. The agent may have been suspended or deleted meanwhile. */
  async function start(agentId: string | undefined, call: CallContext): Promise<BrowserSession> {
    const agent = agentOf(agentId, call);
    if (!config.current.enabled) throw new AppError('precondition_failed', off);
    const running = browsers.running(agent.id);
    if (running !== undefined) return running;
    const session = await browsers.start(agent.id);
    try {
      agents.usable(agent.id, call);
      if (!config.current.enabled) throw new AppError('precondition_failed', off);
    } catch (error) {
      await browsers.stop(agent.id);
      throw error;
    }
    return session;
  }

  function runningOf(agentId: string | undefined, call: CallContext): BrowserSession {
    const agent = agentOf(agentId, call);
    const session = browsers.running(agent.id);
    if (session === undefined)
      throw new AppError(
        'precondition_failed',
        `The browser of ${agent.id} does not run: open an address with browser.navigate, or call browser.start`,
      );
    return session;
  }

  const hidden = <T>(value: T): T => hideIn(value, deps.hideSecrets);

  function audit(
    call: CallContext,
    actionType: string,
    agentId: string,
    metadata: Record<string, string | number | boolean>,
    risk: 'mutate' | 'destructive',
  ) {
    return recordAudit(deps, call, { actionType, classification: risk, target: agentId, metadata });
  }

  async function guardAct(session: BrowserSession, request: BrowserAct, call: CallContext): Promise<void> {
    const { kind } = request;
    // For an agent, a person has approved exactly this call: its tool asks.
    if (kind === 'evaluate' && call.agentCaller === undefined && !isAdmin(call))
      throw new AppError('denied', 'request.kind: "evaluate" needs a token of scope admin', { param: 'request', required: 'admin' });
    const isSecret = kind === 'type' && request.secret !== undefined;
    if (kind !== 'evaluate' && kind !== 'upload' && !isSecret) return;
    const facts = kind === 'upload' ? { files: request.paths.length } : isSecret ? { secretName: request.secret ?? '' } : {};
    await audit(call, 'browser.act', session.agentId, { kind, ...facts }, 'mutate');
  }

  return {
    async 'browser.status'({ agentId }, call) {
      const agent = knownAgent(agentId, call);
      const session = browsers.running(agent.id);
      const reason = config.current.enabled ? await browsers.unavailable() : off;
      const known = { available: reason === undefined, ...(reason !== undefined && { reason }), cdpPort: null };
      const none = { running: false, connected: false, ...known, tabCount: 0, activeTabs: 0, held: false };
      if (session === undefined) return none;
      const tabs = await session.tabs();
      const front = tabs.find(({ active }) => active);
      return hidden({
        ...none,
        running: true,
        connected: true,
        chromeVersion: session.chromeVersion,
        tabCount: tabs.length,
        activeTabs: tabs.length,
        ...(front !== undefined && { url: front.url, targetUrl: front.url }),
        held: session.isHeld,
      });
    },

    async 'browser.start'({ agentId }, call) {
      await start(agentId, call);
      return { started: true as const };
    },

    async 'browser.stop'({ agentId, forget }, call) {
      const agent = knownAgent(agentId, call);
      if (forget) await audit(call, 'browser.forget', agent.id, {}, 'destructive');
      await browsers.stop(agent.id, { forget });
      return { stopped: true as const };
    },

    async 'browser.navigate'(params, call) {
      const [tabId, url] = [tabOf(params), urlOf(params)];
      if (url === undefined) throw new AppError('invalid_params', 'url is required', { param: 'url' });
      const session = await free(await start(params.agentId, call), call);
      const step = { action: 'navigate', detail: url, tabId, picture: true };
      return hidden(await recorder.step(session, call, step, () => session.navigate(tabId, url, call.signal)));
    },

    async 'browser.open'(params, call) {
      const url = urlOf(params);
      const session = await free(await start(params.agentId, call), call);
      return hidden(await recorder.step(session, call, { action: 'open', detail: url, picture: true }, () => session.open(url, call.signal)));
    },

    async 'browser.snapshot'({ agentId, tabId, targetId, ...options }, call) {
      const tab = tabOf({ tabId, targetId });
      const maxChars = options.maxChars ?? config.current.snapshotMaxChars;
      const session = await shownTo(call, runningOf(agentId, call));
      const step = { action: 'snapshot', detail: options.selector, tabId: tab };
      return hidden(await recorder.step(session, call, step, () => session.snapshot(tab, { ...options, maxChars }, call.signal)));
    },

    async 'browser.screenshot'({ agentId, tabId, targetId, ...options }, call) {
      const { ref, element, fullPage } = options;
      if (ref !== undefined && element !== undefined) throw new AppError('invalid_params', 'Expected either ref or element', { param: 'element' });
      if (fullPage === true && (ref ?? element) !== undefined)
        throw new AppError('invalid_params', 'fullPage is not supported for element screenshots', { param: 'fullPage' });
      const tab = tabOf({ tabId, targetId });
      const session = await shownTo(call, runningOf(agentId, call));
      const step = { action: 'screenshot', detail: element, tabId: tab, ...(ref !== undefined && { refs: [ref] }) };
      const { bytes, ...facts } = await recorder.step(session, call, step, () => session.screenshot(tab, options, call.signal));
      return { ...dataOf(bytes), ...facts };
    },

    async 'browser.pdf'(params, call) {
      const tabId = tabOf(params);
      const session = await free(runningOf(params.agentId, call), call);
      const bytes = await recorder.step(session, call, { action: 'pdf', tabId }, () => session.pdf(tabId, call.signal));
      return { ...dataOf(bytes), mimeType: 'application/pdf' as const };
    },

    async 'browser.act'({ agentId, request, ...named }, call) {
      const tabId = tabOf(named);
      const session = await free(runningOf(agentId, call), call);
      await guardAct(session, request, call);
      const { workspaceDir } = agentOf(agentId, call);
      const step = { ...describeAct(request), tabId };
      return hidden(await recorder.step(session, call, step, () => session.act(tabId, request, { workspaceDir, signal: call.signal })));
    },

    async 'browser.tabs'({ agentId }, call) {
      const session = browsers.running(knownAgent(agentId, call).id);
      return hidden({ tabs: session === undefined ? [] : [...(await session.tabs())] });
    },

    async 'browser.focus'(params, call) {
      const tabId = tabOf(params);
      if (tabId === undefined) throw new AppError('invalid_params', 'tabId is required for browser.focus', { param: 'tabId' });
      const session = await free(runningOf(params.agentId, call), call);
      return recorder.step(session, call, { action: 'focus', tabId, picture: true }, async () => {
        const id = await session.focus(tabId);
        return { focused: true as const, tabId: id, targetId: id };
      });
    },

    async 'browser.close'(params, call) {
      const tabId = tabOf(params);
      const session = await free(runningOf(params.agentId, call), call);
      return recorder.step(session, call, { action: 'close', tabId }, async () => {
        await session.close(tabId);
        return { closed: true as const };
      });
    },

    async 'browser.console'({ agentId, level, ...named }, call) {
      const tabId = tabOf(named);
      const session = await shownTo(call, runningOf(agentId, call));
      const step = { action: 'console', detail: level, tabId };
      const entries = [...(await recorder.step(session, call, step, () => session.console(tabId, level)))];
      return hidden({ entries, messages: entries });
    },

    async 'browser.view'({ agentId, after, waitMs }, call) {
      const { jpeg, ...view } = await runningOf(agentId, call).view(after, waitMs, call.signal);
      return { ...hidden(view), ...(jpeg !== undefined && { jpeg }) };
    },

    async 'browser.take_over'({ agentId, held }, call) {
      const session = runningOf(agentId, call);
      if (session.isHeld !== held) {
        await audit(call, 'browser.take_over', session.agentId, { held }, 'mutate');
        const step: StepToRecord = { action: held ? 'take_over' : 'return', by: 'person' };
        await recorder.step(session, call, step, async () => ({ held: session.hold(held) }));
      }
      return { held: session.isHeld };
    },

    async 'browser.input'({ agentId, events }, call) {
      const session = runningOf(agentId, call);
      if (!session.isHeld) throw new AppError('precondition_failed', 'Take the browser over first: browser.take_over with held: true');
      await audit(call, 'browser.input', session.agentId, countsOf(events), 'mutate');
      const { events: count, characters } = countsOf(events);
      const step: StepToRecord = { action: 'input', detail: `events: ${count}, characters: ${characters}`, by: 'person' };
      return recorder.step(session, call, step, async () => ({ done: await session.input(events) }));
    },
  };
}

/** Two at once would work against each other: an agent waits until the person returns the browser, other callers are refused. */
async function free(session: BrowserSession, call: CallContext): Promise<BrowserSession> {
  if (call.agentCaller !== undefined) await session.untilFree(heldWaitMs, call.signal);
  if (session.isHeld) throw new AppError('conflict', 'A person has taken the browser over: wait until it is returned');
  return session;
}

/** What a person types is not for the agent's eyes; other callers may watch. */
const shownTo = async (call: CallContext, session: BrowserSession): Promise<BrowserSession> =>
  call.agentCaller === undefined ? session : free(session, call);

const tabOf = ({ tabId, targetId }: NamedTab) => sameOf('tabId', tabId, 'targetId', targetId);
const urlOf = ({ url, targetUrl }: NamedUrl) => sameOf('url', url, 'targetUrl', targetUrl);

function sameOf(name: string, value: string | undefined, alias: string, other: string | undefined): string | undefined {
  if (value !== undefined && other !== undefined && value !== other)
    throw new AppError('invalid_params', `${alias}: another name of ${name}, which has another value: give one of them`, { param: alias });
  return value ?? other;
}

function dataOf(bytes: Buffer) {
  const base64 = bytes.toString('base64');
  return { base64, data: base64 };
}

/** Only counts: what is typed may be a password. */
function countsOf(events: Params<'browser.input'>['events']) {
  const characters = events.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0);
  return { events: events.length, characters };
}

/** Hides secrets in all strings of a result. Each separately: snapshots escape values, and JSON would escape them twice. */
function hideIn<T>(value: T, hideSecrets: (text: string) => string): T {
  const shown = JSON.stringify(value, (_, each: unknown) => (typeof each === 'string' ? hideSecrets(each) : each));
  return parseJson(shown) as T;
}
