import { redactionMarker } from './config/secrets.ts';

/** A live secret shorter than this is not searched for: it would match ordinary words. */
const minSecretLength = 8;
/** A pattern knows whether it applies after this many characters at most, so a stream holds back no more. */
const window = 1024;
/** A match that is still open at the end of a chunk is held back up to this length, then dropped as it arrives. */
const maxHeld = 65_536;

/**
 * What secrets of others look like. Group 1, if any, is kept. Every pattern is linear:
 * repetitions are bounded, or start only where the previous one ended (else a long line could stall the process).
 */
const patterns: readonly RegExp[] = [
  /(\b(?:bearer|basic)[ \t]{1,8})[\w.~+/=-]{16,}/gi,
  /((?:authorization|api-key)\\?["']?[ \t]{0,8}[:=][ \t]{0,8}\\?["']?(?:[a-z]{1,16}[ \t]{1,8})?)[^\s"'\\,;]{8,}/gi,
  /(?<![A-Za-z0-9])(?:sk|pk|rk)[-_][\w-]{16,}/g,
  /(?<![A-Za-z0-9])(?:gh_|gh[pousr]_|github_pat_|glpat-|gsk_|xai-|hf_|xox[abeoprs]-|whsec_|npm_|AIza)[\w-]{20,}/g,
  /(?<![A-Za-z0-9])A[KS]IA[0-9A-Z]{16}(?![0-9A-Z])/g,
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*/g,
  /(:\/\/)[^\s/?#@:"'\\]{0,256}:[^\s/?#@"'\\]{1,512}(?=@)/g,
  /([?&](?:token|access_token|refresh_token|id_token|api_?key|key|secret|client_secret|password|signature|sig)=)[^&\s"'#\\]+/gi,
  /("[\w-]{0,40}(?:authorization|api[_-]?key|private[_-]?key|passw(?:or)?d|passphrase|secret|token|cookie)\\?"[ \t]{0,8}:[ \t]{0,8}\\?")[^"\\]+/gi,
];
/** One cheap scan rules out every pattern for nearly all lines. */
const hint =
  /bearer|basic|auth|key|[spr]k[-_]|gh|glpat|gsk|xai|hf_|xox|whsec|npm_|AIza|AKIA|ASIA|eyJ|:\/\/|token|secret|passw|passphrase|cookie|[?&]sig|-----BEGIN/i;
const pemBegin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const pemEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;

/** A stretch of text to hide; `kind` says how it continues when the text ends inside it. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly kind: 'exact' | 'run' | 'pem';
}

export interface Redactor {
  /** Replaces every live secret and everything that looks like one by `[REDACTED]`. Linear in the length of the text, which has no limit. */
  redact(text: string): string;
  /** Hides only the live secrets: for text under work, in which something may legitimately look like a key. */
  hide(text: string): string;
  /** Adds live secrets, including the forms they take inside JSON, URLs and sent forms. */
  add(secrets: Iterable<string>): void;
  /** Adds live secrets instead of those given under the same key before: for secrets that keep changing. */
  replace(key: string, secrets: Iterable<string>): void;
  /** Redacts text that arrives in chunks: finds a secret that is split between two. */
  stream(): RedactorStream;
}

export interface RedactorStream {
  /** Returns what is safe to emit by now; holds the rest back. */
  push(chunk: string): string;
  /** Returns the rest. */
  end(): string;
}

/** The one redactor: every log line, error text and export passes it (reliability §4.7). */
export function createRedactor(secrets: Iterable<string> = []): Redactor {
  const lasting = new Set<string>();
  const replaced = new Map<string, readonly string[]>();
  let live: ReadonlySet<string> = lasting;
  let longest = 0;
  let anyLive: RegExp | undefined;

  function add(more: Iterable<string>): void {
    const before = lasting.size;
    for (const form of formsOf(more)) lasting.add(form);
    if (lasting.size !== before) update();
  }

  function update(): void {
    live = new Set([...lasting, ...[...replaced.values()].flat()]);
    longest = Math.max(0, ...[...live].map((form) => form.length));
    anyLive = live.size === 0 ? undefined : new RegExp([...live].map((form) => RegExp.escape(form)).join('|'));
  }

  function liveSpans(text: string): Span[] {
    const spans: Span[] = [];
    if (anyLive?.test(text) !== true) return spans;
    // Each separately, and from the next character on, so that of two that overlap neither keeps its tail.
    for (const form of live)
      for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + 1)) spans.push({ from: at, to: at + form.length, kind: 'exact' });
    return spans;
  }

  function spansOf(text: string): Span[] {
    const spans = liveSpans(text);
    if (hint.test(text)) {
      for (const pattern of patterns)
        for (const match of text.matchAll(pattern))
          spans.push({ from: match.index + (match[1]?.length ?? 0), to: match.index + match[0].length, kind: 'run' });
      spans.push(...pemSpans(text));
    }
    return merged(spans);
  }

  add(secrets);
  return {
    redact: (text) => cover(text, spansOf(text)),
    hide: (text) => cover(text, merged(liveSpans(text))),
    add,
    replace(key, secrets) {
      const forms = formsOf(secrets);
      if (forms.length === 0) replaced.delete(key);
      else replaced.set(key, forms);
      update();
    },
    stream: () => createStream(spansOf, () => Math.max(longest, window)),
  };
}

/** Returns the forms that secrets take in texts, JSON, URLs and sent forms. */
function formsOf(secrets: Iterable<string>): readonly string[] {
  return [...secrets]
    .filter((secret) => secret.length >= minSecretLength)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed()), encodeForm(secret)]);
}

/** Returns a value as the address of a sent form has it. */
const encodeForm = (value: string): string => new URLSearchParams([['', value]]).toString().slice(1);

/** Finds private keys from their first line to their last, or to the end of the text when the last is missing. */
function pemSpans(text: string): Span[] {
  const spans: Span[] = [];
  pemBegin.lastIndex = 0;
  for (let begin = pemBegin.exec(text); begin !== null; begin = pemBegin.exec(text)) {
    pemEnd.lastIndex = pemBegin.lastIndex;
    const end = pemEnd.exec(text);
    const to = end === null ? text.length : pemEnd.lastIndex;
    spans.push({ from: begin.index, to, kind: 'pem' });
    if (end === null) break;
    pemBegin.lastIndex = to;
  }
  return spans;
}

function merged(spans: Span[]): Span[] {
  const result: Span[] = [];
  for (const span of spans.sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last === undefined || span.from >= last.to) result.push(span);
    else if (span.to > last.to) result[result.length - 1] = { from: last.from, to: span.to, kind: span.kind };
  }
  return result;
}

function cover(text: string, spans: readonly Span[]): string {
  if (spans.length === 0) return text;
  let covered = '';
  let at = 0;
  for (const { from, to } of spans) {
    covered += text.slice(at, from) + redactionMarker;
    at = to;
  }
  return covered + text.slice(at);
}

function createStream(spansOf: (text: string) => Span[], holdBack: () => number): RedactorStream {
  let held = '';
  /** Set while the rest of a secret that was already covered is dropped. */
  let dropping: 'run' | 'pem' | undefined;

  function drop(chunk: string): string {
    if (dropping === 'run') {
      const length = /^[^\s"'&#,;\\@]*/.exec(chunk)?.[0].length ?? 0;
      if (length < chunk.length) dropping = undefined;
      return chunk.slice(length);
    }
    const text = held + chunk;
    pemEnd.lastIndex = 0;
    if (pemEnd.test(text)) {
      dropping = undefined;
      held = '';
      return text.slice(pemEnd.lastIndex);
    }
    // The last line itself may be split.
    held = text.slice(-128);
    return '';
  }

  return {
    push(chunk) {
      const fresh = dropping === undefined ? chunk : drop(chunk);
      if (dropping !== undefined) return '';
      const text = held + fresh;
      const spans = spansOf(text);
      let cut = Math.max(0, text.length - holdBack());
      for (const { from, to } of spans) if (from < cut && to > cut) cut = from;
      const open = spans.findLast((span) => span.to === text.length && span.kind !== 'exact');
      if (open !== undefined && text.length - open.from > maxHeld) {
        dropping = open.kind === 'pem' ? 'pem' : 'run';
        held = open.kind === 'pem' ? text.slice(-128) : '';
        return cover(text, spans);
      }
      if (open !== undefined) cut = Math.min(cut, open.from);
      // The text before a secret may be what identifies it (`Bearer `), so both stay together.
      const kept = spans.find((span) => span.from >= cut);
      if (kept !== undefined) cut = Math.min(cut, Math.max(0, kept.from - 128));
      for (const { from, to } of spans) if (from < cut && to > cut) cut = from;
      held = text.slice(cut);
      return cover(
        text.slice(0, cut),
        spans.filter((span) => span.to <= cut),
      );
    },
    end() {
      const rest = dropping === undefined ? cover(held, spansOf(held)) : '';
      held = '';
      dropping = undefined;
      return rest;
    },
  };
}
