/** What a person did at the keyboard. `text` is typed or pasted; a paste is one key, whatever lines it has. */
export type Key =
  | { readonly name: 'text' | 'paste'; readonly text: string }
  | { readonly name: 'control' | 'alt'; readonly letter: string }
  | { readonly name: KeyName };

export type KeyName =
  | 'enter'
  | 'newline'
  | 'escape'
  | 'tab'
  | 'back-tab'
  | 'backspace'
  | 'delete'
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'word-left'
  | 'word-right'
  | 'home'
  | 'end';

/** How long a lone escape byte may be the beginning of a sequence: a slow connection may split one. */
const escapeMs = 60;
const pasteStart = '\x1b[200~';
const pasteEnd = '\x1b[201~';
/** Pasted text is not unlimited: a terminal that never sends the end must not fill the memory. */
const maxPaste = 4 * 1024 * 1024;

const sequences: Readonly<Record<string, KeyName>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  '[H': 'home',
  '[F': 'end',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  OH: 'home',
  OF: 'end',
  '[1~': 'home',
  '[3~': 'delete',
  '[4~': 'end',
  '[7~': 'home',
  '[8~': 'end',
  '[Z': 'back-tab',
  '[1;5C': 'word-right',
  '[1;5D': 'word-left',
  '[1;3C': 'word-right',
  '[1;3D': 'word-left',
  '[13;2u': 'newline',
  '[13;3u': 'newline',
  '[27;2;13~': 'newline',
};

const controls: Readonly<Record<string, KeyName>> = { '\r': 'enter', '\n': 'newline', '\t': 'tab', '\x7f': 'backspace', '\b': 'backspace' };

/** Turns what a terminal in raw mode sends into keys. */
export class KeyDecoder {
  readonly #emit: (key: Key) => void;
  #rest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(emit: (key: Key) => void) {
    this.#emit = emit;
  }

  push(chunk: string): void {
    clearTimeout(this.#timer);
    this.#rest += chunk;
    while (this.#rest !== '' && this.#next());
    if (this.#rest.startsWith('\x1b') && !this.#rest.startsWith(pasteStart))
      this.#timer = setTimeout(() => {
        // Nothing followed: the key itself, and whatever was typed after it.
        const rest = this.#rest.slice(1);
        this.#rest = '';
        this.#emit({ name: 'escape' });
        if (rest !== '') this.push(rest);
      }, escapeMs);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Reads one key from the start; returns false when it is not complete. */
  #next(): boolean {
    const input = this.#rest;
    if (input.startsWith(pasteStart)) {
      const end = input.indexOf(pasteEnd);
      if (end === -1 && input.length < maxPaste) return false;
      const until = end === -1 ? input.length : end;
      this.#take(end === -1 ? until : end + pasteEnd.length, { name: 'paste', text: withLineFeeds(input.slice(pasteStart.length, until)) });
      return true;
    }
    if (input.startsWith('\x1b')) return this.#escape(input);
    const control = controls[input[0] ?? ''];
    if (control !== undefined) return this.#take(1, { name: control });
    const code = input.charCodeAt(0);
    if (code < 32) return this.#take(1, code === 0 ? undefined : { name: 'control', letter: String.fromCharCode(code + 96) });
    const text = /^[^\u0000-\u001f\u007f]+/.exec(input)?.[0] ?? input[0] ?? '';
    return this.#take(text.length, { name: 'text', text });
  }

  #escape(input: string): boolean {
    const found = /^\x1b(\[[\d;?<>=]*[@-~]|O[A-Z])/.exec(input)?.[1];
    if (found !== undefined) {
      const name = sequences[found];
      return this.#take(found.length + 1, name === undefined ? undefined : { name });
    }
    // A sequence may still arrive.
    if (/^\x1b(\[[\d;?<>=]*|O)?$/.test(input)) return false;
    const letter = input[1] ?? '';
    if (letter === '\r' || letter === '\n') return this.#take(2, { name: 'newline' });
    if (letter === '\x1b') return this.#take(1, { name: 'escape' });
    return this.#take(2, { name: 'alt', letter: letter === '\x7f' ? 'backspace' : letter });
  }

  #take(length: number, key: Key | undefined): true {
    this.#rest = this.#rest.slice(length);
    if (key !== undefined) this.#emit(key);
    return true;
  }
}

function withLineFeeds(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n');
}
