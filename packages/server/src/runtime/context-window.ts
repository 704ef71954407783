import type { CountTokens, ModelMessage, ModelPart, ToolCall } from '../llm/model.ts';
import { cutFenced, cutInsideFences } from './cut-fenced.ts';
import { countMessage as countWhole } from './message-tokens.ts';
import { pointerOf } from './off-load.ts';

export interface ContextInput {
  readonly messages: readonly ModelMessage[];
  /** Tokens of the system prompt and the tools, which are never cut. */
  readonly fixedTokens: number;
  /** Tokens that everything together may have. */
  readonly limit: number;
}

export interface FittedContext {
  /** The given list when it fits. */
  readonly messages: readonly ModelMessage[];
  /** Tokens of everything together; never above the limit. */
  readonly tokens: number;
  /** Number of given messages that were dropped or shortened. */
  readonly leftOut: number;
}

/** What remains after all permitted cuts, and still does not fit. */
export interface ContextOverflow {
  readonly needed: number;
}

/**
 * Keeps a conversation inside the window by omitting as little as possible, always the same for the same input: first
 * the content of old tool results, then whole exchanges from the oldest on, finally the middle of what remains.
 * The last user message keeps the user's own text with its images and files, and each tool result stays with its call.
 */
export type FitContext = (input: ContextInput) => FittedContext | ContextOverflow;

/** Prefix of the message that holds notes on the earlier part; it is dropped last. */
export const notesHead = '[Notes on the earlier part of this conversation';

/** Comes first, or after the notes, when earlier messages were omitted. */
export const omissionNote = '[Earlier messages of this conversation were left out, because it no longer fits into the context.]';

/** Tool results that are spared while older ones can be removed. */
export const recentResults = 4;
/** Share of the limit to cut down to, so that the prefix, and with it the provider's cache, does not change at every step. */
const target = 0.8;
/** A text cut below this is less useful than a note. */
const leastPieceTokens = 200;

export function createFitContext(countTokens: CountTokens): FitContext {
  const countMessage = (message: ModelMessage) => countWhole(message, countTokens);

  return ({ messages, fixedTokens, limit }) => {
    let tokens = fixedTokens;
    for (const message of messages) tokens += countMessage(message);
    if (tokens <= limit) return { messages, tokens, leftOut: 0 };
    const list = [...messages];
    const replace = (index: number, message: ModelMessage) => {
      const old = list[index];
      if (old === undefined) return;
      tokens += countMessage(message) - countMessage(old);
      list[index] = message;
    };
    const remove = (from: number, count: number) => {
      for (const message of list.splice(from, count)) tokens -= countMessage(message);
    };
    const comfortable = fixedTokens + (limit - fixedTokens) * target;

    maskOldResults(list, () => tokens <= comfortable, replace);
    if (tokens > comfortable) dropOldExchanges(list, () => tokens <= comfortable, remove);
    // Notes that an answer may need are dropped only when necessary.
    if (tokens > limit && beginOf(list) === 1 && list[1]?.role === 'user') remove(0, 1);
    const begin = beginOf(list);
    if (list.length < messages.length && list[begin]?.content !== omissionNote) {
      const note: ModelMessage = { role: 'user', content: omissionNote };
      list.splice(begin, 0, note);
      tokens += countMessage(note);
    }
    if (tokens > limit) shrinkLastExchange(list, { over: () => tokens - limit, replace, remove, countTokens });
    if (tokens > limit) return { needed: Math.ceil(tokens) };
    const kept = new Set(list);
    return { messages: list, tokens, leftOut: messages.filter((message) => !kept.has(message)).length };
  };
}

function maskOldResults(list: readonly ModelMessage[], done: () => boolean, replace: (index: number, message: ModelMessage) => void): void {
  const results = list.flatMap((message, index) => (message.role === 'tool' ? [index] : []));
  for (const index of results.slice(0, -recentResults)) {
    if (done()) return;
    mask(list, index, replace);
  }
}

/** It stays the same from step to step, and keeps its first number. */
const masked = /^\[\d+ characters left out to save room\](?:\n\[[^\n]+\])?$/;

function mask(list: readonly ModelMessage[], index: number, replace: (index: number, message: ModelMessage) => void): void {
  const message = list[index];
  if (message === undefined || masked.test(message.content)) return;
  const pointer = pointerOf(message.content);
  const content = `[${message.content.length} characters left out to save room]${pointer === undefined ? '' : `\n${pointer}`}`;
  if (content.length < message.content.length) replace(index, { ...message, content });
}

/** Index after the notes on the earlier part, if there are any. */
const beginOf = (list: readonly ModelMessage[]) => (list[0]?.content.startsWith(notesHead) === true ? 1 : 0);

/** An exchange starts with a user message and ends before the next one; the last one stays. */
function dropOldExchanges(list: readonly ModelMessage[], done: () => boolean, remove: (from: number, count: number) => void): void {
  const begin = beginOf(list);
  while (!done()) {
    const next = list.findIndex((message, index) => index > begin && message.role === 'user');
    if (next === -1) return;
    remove(begin, next - begin);
  }
}

interface Shrinking {
  /** Tokens that still have to be removed. */
  readonly over: () => number;
  readonly replace: (index: number, message: ModelMessage) => void;
  readonly remove: (from: number, count: number) => void;
  readonly countTokens: CountTokens;
}

/**
 * Shortens a single exchange that is too long: first the middles of the largest texts, then the contents of older steps, then those steps,
 * then everything but the question's own text.
 */
function shrinkLastExchange(list: readonly ModelMessage[], shrinking: Shrinking): void {
  const { over, replace, remove } = shrinking;
  const sizes = list.map((message) => longestText(message).length);
  const largestFirst = list.map((_, index) => index).toSorted((a, b) => (sizes[b] ?? 0) - (sizes[a] ?? 0));
  for (const index of largestFirst) cutTo(list, index, leastPieceTokens, shrinking);
  const lastStep = () => list.findLastIndex((message) => message.role === 'assistant' && message.toolCalls !== undefined);
  for (let index = 0; index < lastStep() && over() > 0; index += 1) if (list[index]?.role !== 'user') empty(list, index, replace);
  while (over() > 0) {
    const first = list.findIndex((message) => message.role === 'assistant');
    if (first === -1 || first >= lastStep()) break;
    const after = list.findIndex((message, index) => index > first && message.role !== 'tool');
    remove(first, after - first);
  }
  for (const index of list.keys()) if (over() > 0 && list[index]?.role !== 'user') empty(list, index, replace);
  const question = list.findLastIndex((message) => message.role === 'user');
  cutTo(list, question, 0, shrinking);
}

function withoutArguments(call: ToolCall): ToolCall {
  return call.arguments.length <= 200 ? call : { ...call, arguments: JSON.stringify({ left_out: `${call.arguments.length} characters` }) };
}

function empty(list: readonly ModelMessage[], index: number, replace: Shrinking['replace']): void {
  const message = list[index];
  if (message?.role === 'assistant' && message.toolCalls !== undefined)
    replace(index, { ...message, toolCalls: message.toolCalls.map(withoutArguments) });
  mask(list, index, replace);
}

/**
 * Removes the middle of a message, as much as needed, but leaves `least` tokens. Of a user's message only untrusted attachments are cut: half
 * a question is another question.
 */
function cutTo(list: readonly ModelMessage[], index: number, least: number, { over, replace, countTokens }: Shrinking): void {
  const message = list[index];
  if (message === undefined || message.content === omissionNote || over() <= 0) return;
  const whole = longestText(message);
  const tokens = countTokens(whole);
  const allowed = Math.max(least, tokens - over());
  if (tokens <= allowed) return;
  const isOwn = message.role === 'user' && !message.content.startsWith(notesHead);
  const cut = isOwn ? cutInsideFences : cutFenced;
  let kept = Math.floor(whole.length * Math.min(1, allowed / tokens));
  const leastLength = isOwn ? cut(whole, 0).length : 0;
  for (;;) {
    const shorter = cut(whole, kept);
    const isLeast = kept === 0 || shorter.length <= leastLength;
    const needed = shorter.length === whole.length ? tokens : countTokens(shorter);
    if (needed <= allowed || (isOwn && isLeast && shorter.length < whole.length)) {
      replace(index, withLongestText(message, shorter));
      return;
    }
    if (isLeast) return;
    // Tokens are not spread evenly over a text, and the note in the gap costs some as well.
    kept = Math.max(0, Math.floor(kept * Math.min(0.9, allowed / needed)) - 1);
  }
}

const textOf = (part: ModelPart) => (part.type === 'text' ? part.text : '');

function longestTextPart(parts: readonly ModelPart[]): number {
  return parts.reduce(
    (longest, part, index) => (textOf(part).length > (longest === -1 ? 0 : textOf(parts[longest] ?? part).length) ? index : longest),
    -1,
  );
}

/** Returns what may be cut from a message: its content, or the longest of its text parts. */
function longestText(message: ModelMessage): string {
  if (message.role !== 'user' || message.parts === undefined) return message.content;
  const part = message.parts[longestTextPart(message.parts)];
  return part === undefined ? '' : textOf(part);
}

function withLongestText(message: ModelMessage, text: string): ModelMessage {
  if (message.role !== 'user' || message.parts === undefined) return { ...message, content: text };
  return { ...message, parts: message.parts.with(longestTextPart(message.parts), { type: 'text', text }) };
}
