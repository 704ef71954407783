import { connect, type Socket } from 'node:net';

export interface EventReaderOptions {
  readonly port: number;
  readonly token: string;
  /** The query, including its `?`. */
  readonly query?: string;
  readonly lastEventId?: number;
  /** Reads nothing from the socket until `resume`. */
  readonly stalled?: boolean;
}

/** A client of `/api/events` on a bare socket, with what it has read so far. */
export interface EventReader {
  readonly socket: Socket;
  /** Ids of the events, in the order of their arrival. */
  readonly ids: readonly number[];
  /** Ranges that the server said were missed: first and last id. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** Milliseconds between the time of an event and its arrival. */
  readonly latenciesMs: readonly number[];
  /** The newest id: of an event, of a gap or of the greeting. */
  readonly lastId: number;
  /** When the connection ended; by `performance.now()`. */
  readonly closedAtMs: number | undefined;
  /** Resolves with the head of the answer; a stalled reader never sees it. */
  readonly opened: Promise<string>;
  readonly closed: Promise<void>;
  close(): void;
}

export function openEventReader(options: EventReaderOptions): EventReader {
  const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true });
  const ids: number[] = [];
  const gaps: { from: number; to: number }[] = [];
  const latenciesMs: number[] = [];
  let lastId = options.lastEventId ?? 0;
  let closedAtMs: number | undefined;
  const opened = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();

  function take(frame: string): void {
    const id = /^id: (\d+)$/m.exec(frame)?.[1];
    const kind = /^event: (.+)$/m.exec(frame)?.[1];
    const data = /^data: (.+)$/m.exec(frame)?.[1] ?? '';
    if (id !== undefined) lastId = Number(id);
    if (id === undefined || kind === undefined) return;
    if (kind === 'gap') {
      const gap: { from: number; to: number } = JSON.parse(data);
      gaps.push(gap);
      return;
    }
    ids.push(Number(id));
    const at = Number(/"timestamp":(\d+)\}$/.exec(data)?.[1]);
    if (Number.isFinite(at)) latenciesMs.push(Date.now() - at);
  }

  let head: string | undefined;
  let pieces: string[] = [];
  /** The end of a frame may be split by the end of a read. */
  let carried = '';
  function read(part: string): void {
    let text = carried + part;
    if (head === undefined) {
      const end = text.indexOf('\r\n\r\n');
      carried = end === -1 ? text : '';
      if (end === -1) return;
      head = text.slice(0, end);
      opened.resolve(head);
      text = text.slice(end + 4);
    }
    // Frames may be long: the chunks of one are joined once.
    let from = 0;
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n', from)) {
      take(pieces.join('') + text.slice(from, end));
      pieces = [];
      from = end + 2;
    }
    const to = from < text.length && text.endsWith('\n') ? text.length - 1 : text.length;
    pieces.push(text.slice(from, to));
    carried = text.slice(to);
  }

  socket.setEncoding('utf8');
  if (options.stalled === true) socket.pause();
  socket.on('data', read);
  socket.on('connect', () => {
    const last = options.lastEventId === undefined ? '' : `last-event-id: ${options.lastEventId}\r\n`;
    socket.write(`GET /api/events${options.query ?? ''} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${options.token}\r\n${last}\r\n`);
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    closedAtMs = performance.now();
    opened.resolve(head ?? '');
    closed.resolve();
  });
  return {
    socket,
    ids,
    gaps,
    latenciesMs,
    get lastId() {
      return lastId;
    },
    get closedAtMs() {
      return closedAtMs;
    },
    opened: opened.promise,
    closed: closed.promise,
    close: () => socket.destroy(),
  };
}
