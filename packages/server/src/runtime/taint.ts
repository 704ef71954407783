import { parseJson } from '../kernel/json.ts';
import type { ModelMessage } from '../llm/model.ts';
import { wholeFence } from './cut-fenced.ts';
import { fenceOpening, holdsSource, holdsTaint } from './fence.ts';
import type { Tool } from './tool.ts';
import type { TurnInput } from './turn.ts';

/** Sources of fences with workspace content: an operator may declare that nobody else writes there. */
const workspaceSource = /^(?:workspace file\b|command output$)/;
/** Sources of fences with what the owner said or was shown before, including text of the model. */
const recalledSource = /^(?:memory|conversations|earlier messages of this conversation|notes on this conversation)$/;

/** What taints a turn in addition to its messages. */
export interface TaintView extends Pick<TurnInput, 'system' | 'taintedBefore'> {
  readonly agent: { readonly approvals: { readonly trustWorkspace: boolean } };
}

/** Whether the model has read untrusted text: neither the operator's, nor its user's, nor derived from such text alone. */
export function isTainted(messages: readonly ModelMessage[], { system, agent, taintedBefore }: TaintView): boolean {
  if (taintedBefore === true) return true;
  const counts = (source: string) => !(agent.approvals.trustWorkspace && workspaceSource.test(source));
  return (
    messages.some((message) => holdsFile(message) || textsOf(message).some((text) => holdsTaint(text, counts))) ||
    system.some((text) => holdsTaint(text, counts))
  );
}

/** Whether the turn can access private data: in its input, or with a tool that it may call. */
export function reachesPrivate({ tools, messages, system }: Pick<TurnInput, 'tools' | 'messages' | 'system'>): boolean {
  return (
    messages.length > 1 ||
    tools.some((tool) => tool.readsPrivate ?? tool.risk === 'read') ||
    system.some((text) => text.includes('USER.md')) ||
    messages.some((message) => textsOf(message).some(isRecalled))
  );
}

/**
 * Whether a call can change something or leak something. A read-only tool leaks nothing to a destination from the
 * configuration, nor to an address that it was given: only an address made up by the model can carry what it has read.
 */
export function hasEffect(tool: Tool, args: unknown, before: readonly ModelMessage[]): boolean {
  if (tool.risk !== 'outward') return tool.risk === 'write';
  const to = tool.destination?.(args);
  if (to === undefined) return true;
  return to.kind === 'address' && !wasGiven(to.url, before);
}

function textsOf(message: ModelMessage): readonly string[] {
  if (message.role !== 'user' || message.parts === undefined) return [message.content];
  return [message.content, ...message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))];
}

/** An image or a PDF file also carries content, and no fence can enclose it. */
function holdsFile(message: ModelMessage): boolean {
  return message.role === 'user' && message.parts?.some((part) => part.type !== 'text') === true;
}

const isRecalled = (text: string) => holdsSource(text, (source) => recalledSource.test(source));

/**
 * Whether the address appears word for word in what somebody else said before the model did: in a message of a user, or
 * within the fence of a result. A tool's own text may repeat the model's, and so may recalled text:
 * an address that the model once wrote into an answer would return from there as one that was given.
 */
function wasGiven(address: string, before: readonly ModelMessage[]): boolean {
  for (const message of before) {
    if (message.role === 'assistant') {
      if (message.content.includes(address) || (message.toolCalls ?? []).some((call) => argumentsHold(call.arguments, address))) return false;
    } else if (textsOf(message).some((text) => occursIn(withoutRecalled(message.role === 'tool' ? fencedPart(text) : text), address))) return true;
  }
  return false;
}

function fencedPart(text: string): string {
  const [opening] = text.matchAll(fenceOpening);
  return opening === undefined ? '' : text.slice(opening.index);
}

function withoutRecalled(text: string): string {
  return text.replaceAll(wholeFence, (fence) => (isRecalled(fence) ? '' : fence));
}

/** The text of the call can spell some characters in several ways; its strings cannot. */
function argumentsHold(text: string, address: string): boolean {
  if (text.includes(address)) return true;
  try {
    return valueHolds(parseJson(text), address);
  } catch {
    // No call was made from it.
    return false;
  }
}

function valueHolds(value: unknown, address: string): boolean {
  if (typeof value === 'string') return value.includes(address);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, item]) => key.includes(address) || valueHolds(item, address));
}

/** Whether the text contains the whole address: the start of a longer address is another address. */
function occursIn(text: string, address: string): boolean {
  for (let at = text.indexOf(address); at !== -1; at = text.indexOf(address, at + 1)) {
    const behind = text.slice(at + address.length, at + address.length + 2);
    if (!/[\w./:%+-]/.test(text.charAt(at - 1)) && /^(?:$|[\s"'<>)\]}|\\`*,;]|[.!?:](?:$|\s))/.test(behind)) return true;
  }
  return false;
}
