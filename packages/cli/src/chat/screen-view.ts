import stringWidth from 'fast-string-width';
import { wrapAnsi } from 'fast-wrap-ansi';
import type { Io } from '../io.ts';
import { MarkdownStream } from '../render/markdown.ts';
import { createPaint, type Style } from '../render/paint.ts';
import { plainText, printableText } from '../render/plain.ts';
import { Editor } from './editor.ts';
import type { History } from './history.ts';
import { type Key, KeyDecoder } from './keys.ts';
import { type LiveLines, Screen } from './screen.ts';
import { type AnswerView, type ChatView, type Choice, MessageQueue } from './view.ts';

/** Standard input that can send each key at once. */
export type RawInput = Io['stdin'] & { setRawMode(on: boolean): unknown };

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 160;
/** Answers are drawn in steps, so that a slow connection is not flooded. */
const drawMs = 80;
/** Within this time a second Ctrl-C leaves. */
const leaveMs = 2_000;
const prompt = '> ';

/** Returns standard input if it can be used for a screen that is redrawn. */
export function rawInputOf({ stdin, stdout, env }: Io): RawInput | undefined {
  if (stdin.isTTY !== true || stdout.isTTY !== true || env['TERM'] === 'dumb') return undefined;
  return hasRawMode(stdin) ? stdin : undefined;
}

function hasRawMode(stdin: Io['stdin']): stdin is RawInput {
  return 'setRawMode' in stdin && typeof stdin.setRawMode === 'function';
}

/** A chat on a terminal: what was said scrolls up, an editor with the state above it stays at the bottom. */
export class ScreenView implements ChatView {
  onStop: () => boolean = () => false;
  onMessage: (text: string) => boolean = () => false;
  complete: ChatView['complete'] = () => [];
  readonly #io: Io;
  readonly #input: RawInput;
  readonly #history: History;
  readonly #paint: ReturnType<typeof createPaint>;
  readonly #screen: Screen;
  readonly #editor: Editor;
  readonly #queue = new MessageQueue();
  readonly #decoder = new KeyDecoder((key) => this.#onKey(key));
  readonly #releaseInterrupt: () => void;
  #markdown: MarkdownStream | undefined;
  #activity: { readonly text: string; readonly sinceMs: number } | undefined;
  #thinking: string | undefined;
  #choice: { readonly choice: Choice; readonly resolve: (key: string | undefined) => void } | undefined;
  #frame = 0;
  #spinner: NodeJS.Timeout | undefined;
  #drawing: NodeJS.Timeout | undefined;
  #leaveAtMs = 0;
  #hint: string | undefined;

  constructor(io: Io, input: RawInput, history: History) {
    this.#io = io;
    this.#input = input;
    this.#history = history;
    this.#paint = createPaint(io);
    this.#screen = new Screen(io.stdout);
    this.#editor = new Editor({
      history: history.entries,
      complete: async (before) => ({ candidates: await this.complete(before) }),
      changed: () => this.#draw(),
    });
    this.#releaseInterrupt = io.onInterrupt(() => this.#interrupt());
    input.setEncoding('utf8');
    input.setRawMode(true);
    input.on('data', this.#onData);
    input.on('end', this.#onEnd);
    io.stdout.on('resize', this.#onResize);
    // Bracketed paste: the terminal marks what is pasted.
    io.stdout.write('\x1b[?2004h');
    input.resume();
    this.#draw();
  }

  get waiting(): number {
    return this.#queue.size;
  }

  messages(): AsyncIterable<string> {
    return this.#queue.read();
  }

  note(text: string, style?: Style): void {
    this.#print(text.split('\n').flatMap((line) => this.#wrapped(line, style)));
  }

  answer(): AnswerView {
    const markdown = new MarkdownStream(() => ({ width: this.#screen.columns - 1, paint: this.#paint }));
    this.#markdown = markdown;
    const finish = () => {
      const lines = [...markdown.takeFinished(), ...markdown.end()];
      if (lines.length > 0) this.#print([...lines, '']);
    };
    return {
      add: (text) => {
        markdown.add(printableText(text));
        this.#drawing ??= setTimeout(() => {
          this.#drawing = undefined;
          const lines = markdown.takeFinished();
          if (lines.length > 0) this.#print(lines);
          else this.#draw();
        }, drawMs);
      },
      pause: finish,
      end: () => {
        clearTimeout(this.#drawing);
        this.#drawing = undefined;
        finish();
        this.#markdown = undefined;
        this.#draw();
      },
    };
  }

  activity(text: string | undefined): void {
    if (text === this.#activity?.text) return;
    this.#activity = text === undefined ? undefined : { text, sinceMs: this.#io.now() };
    if (text === undefined) {
      clearInterval(this.#spinner);
      this.#spinner = undefined;
    } else {
      this.#spinner ??= setInterval(() => {
        this.#frame += 1;
        this.#draw();
      }, frameMs);
    }
    this.#draw();
  }

  thinking(text: string | undefined): void {
    this.#thinking = text;
    if (text === undefined) this.#draw();
  }

  choose(choice: Choice, signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const finish = (key: string | undefined) => {
        this.#choice = undefined;
        signal.removeEventListener('abort', cancel);
        this.#draw();
        resolve(key);
      };
      const cancel = () => finish(undefined);
      if (signal.aborted || this.#queue.isOver) return resolve(undefined);
      signal.addEventListener('abort', cancel, { once: true });
      // What is asked stays readable above, however long it is.
      this.#print(choice.lines.flatMap((line, at) => this.#wrapped(line, at === 0 ? 'yellow' : undefined)));
      this.#choice = { choice, resolve: finish };
      // The terminal's bell: the person may have turned to something else.
      this.#io.stdout.write('\x07');
      this.#draw();
    });
  }

  restore(text: string): void {
    if (this.#editor.text === '') this.#editor.set(text);
    this.#draw();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#spinner);
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    this.#decoder.close();
    this.#releaseInterrupt();
    this.#input.off('data', this.#onData);
    this.#input.off('end', this.#onEnd);
    this.#io.stdout.off('resize', this.#onResize);
    this.#screen.print([], { lines: [], row: 0, column: 0 });
    this.#io.stdout.write('\x1b[?2004l');
    this.#input.setRawMode(false);
    this.#input.pause();
  }

  readonly #onData = (chunk: string | Buffer): void => this.#decoder.push(chunk.toString());
  readonly #onEnd = (): void => this.#leave();
  readonly #onResize = (): void => this.#draw();

  #onKey(key: Key): void {
    this.#hint = undefined;
    if (key.name === 'control' && key.letter === 'c') return this.#interrupt();
    if (key.name === 'escape') {
      if (!this.onStop()) this.#draw();
      return;
    }
    if (this.#choice !== undefined) return this.#answerChoice(key);
    const request = this.#editor.handle(key);
    if (request?.type === 'leave') return this.#leave();
    if (request?.type === 'clear-screen') return this.#screen.clear(this.#liveLines());
    if (request?.type === 'submit') {
      this.#history.add(request.text);
      const shown = request.text.split('\n').flatMap((line, at) => this.#wrapped(`${at === 0 ? prompt : '  '}${line}`, 'cyan'));
      this.#print([...shown, '']);
      if (!this.onMessage(request.text)) this.#queue.push(request.text);
    }
    this.#draw();
  }

  /** Keys other than the offered ones are ignored: what was typed before the question must not answer it. */
  #answerChoice(key: Key): void {
    const { choice, resolve } = this.#choice ?? {};
    if (key.name !== 'text' || choice === undefined || resolve === undefined) return;
    const found = choice.options.find((option) => option.key === key.text.toLowerCase());
    if (found !== undefined) resolve(found.key);
  }

  #interrupt(): void {
    if (this.onStop()) return;
    if (this.#editor.text !== '') this.#editor.set('');
    else if (this.#io.now() < this.#leaveAtMs) return this.#leave();
    else {
      this.#leaveAtMs = this.#io.now() + leaveMs;
      this.#hint = 'Press Ctrl-C again to leave.';
    }
    this.#draw();
  }

  #leave(): void {
    this.#choice?.resolve(undefined);
    this.#queue.end();
  }

  #print(lines: readonly string[]): void {
    this.#screen.print(lines, this.#liveLines());
  }

  #draw(): void {
    this.#screen.draw(this.#liveLines());
  }

  #liveLines(): LiveLines {
    const width = this.#screen.columns - 1;
    const above = [...this.#previewLines(), ...this.#thinkingLines(width), ...this.#stateLines(width)];
    const { options } = this.#choice?.choice ?? {};
    if (options !== undefined) {
      const menu = options.map(({ key, label }) => `${this.#paint('bold', key)} ${label}`).join('   ');
      const lines = wrapAnsi(menu, width, { hard: true }).split('\n');
      const all = [...above, ...lines];
      return { lines: all, row: all.length - 1, column: stringWidth(lines.at(-1) ?? '') };
    }
    const view = this.#editor.view(width, prompt);
    // A message longer than the screen scrolls within it.
    const room = Math.max(3, this.#screen.rows - above.length - 3);
    const first = Math.max(0, Math.min(view.row - room + 1, view.lines.length - room));
    const below = this.#belowLines(width);
    const shown = view.lines.slice(first, first + room);
    return { lines: [...above, ...shown, ...below], row: above.length + view.row - first, column: view.column };
  }

  /** The end of the block that is being written. */
  #previewLines(): readonly string[] {
    const lines = this.#markdown?.preview() ?? [];
    const most = Math.max(2, this.#screen.rows - 8);
    const width = this.#screen.columns - 1;
    return lines
      .slice(-most)
      .map((line) => (stringWidth(line) > width ? (wrapAnsi(line, width, { hard: true, trim: false }).split('\n')[0] ?? '') : line));
  }

  #thinkingLines(width: number): readonly string[] {
    if (this.#thinking === undefined) return [];
    const [last = ''] = wrapAnsi(
      plainText(
        this.#thinking
          .trimEnd()
          .slice(-width * 2)
          .replaceAll(/\s+/g, ' '),
      ),
      width,
      { hard: true },
    )
      .split('\n')
      .slice(-1);
    return [this.#paint('dim', last)];
  }

  #stateLines(width: number): readonly string[] {
    if (this.#activity === undefined) return [];
    const { text, sinceMs } = this.#activity;
    const seconds = Math.floor((this.#io.now() - sinceMs) / 1000);
    const time = seconds < 2 ? '' : ` ${seconds} s`;
    const queued = this.#queue.size === 0 ? '' : ` · ${this.#queue.size} queued`;
    const tail = `${time}${queued} · Esc stops`;
    const room = Math.max(8, width - 2 - tail.length);
    const shown = wrapAnsi(plainText(text), room, { hard: true }).split('\n')[0] ?? '';
    return [`${this.#paint('cyan', frames[this.#frame % frames.length] ?? '')} ${this.#paint('dim', shown + tail)}`];
  }

  #belowLines(width: number): readonly string[] {
    if (this.#hint !== undefined) return [this.#paint('dim', this.#hint)];
    const { candidates } = this.#editor;
    if (candidates.length === 0) return [];
    const names = candidates
      .map((one) => one.trimEnd())
      .map((one) => one.slice(one.lastIndexOf(' ') + 1))
      .join('  ');
    return wrapAnsi(plainText(names), width, { hard: true })
      .split('\n')
      .slice(0, 4)
      .map((line) => this.#paint('dim', line));
  }

  #wrapped(text: string, style: Style | undefined): string[] {
    const lines = wrapAnsi(printableText(text.replaceAll('\t', '  ')), this.#screen.columns - 1, { hard: true, trim: false }).split('\n');
    return style === undefined ? lines : lines.map((line) => this.#paint(style, line));
  }
}
