import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const;

/** The server's end of one WebSocket, as much of it as the fake of Slack needs; a test can make it fall silent. */
export class FakeSocket {
  onText: (text: string) => void = () => {};
  onClose: () => void = () => {};
  /** Nothing is answered or sent any more, though the connection stays open. */
  isSilent = false;
  /** Answers to our pings. */
  pongs = 0;
  readonly #socket: Duplex;
  #buffer = Buffer.alloc(0);

  constructor(request: IncomingMessage, socket: Duplex) {
    this.#socket = socket;
    const accept = hash('sha1', `${request.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64');
    socket.write(
      ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'),
    );
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.onClose());
  }

  send(text: string): void {
    this.#write(opcodes.text, Buffer.from(text));
  }

  ping(): void {
    this.#write(opcodes.ping, Buffer.from('Ping from applink'));
  }

  /** Cuts the connection. */
  destroy(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    for (let frame = this.#nextFrame(); frame !== undefined; frame = this.#nextFrame()) {
      if (this.isSilent) continue;
      if (frame.opcode === opcodes.text) this.onText(frame.payload.toString());
      else if (frame.opcode === opcodes.ping) this.#write(opcodes.pong, frame.payload);
      else if (frame.opcode === opcodes.pong) this.pongs += 1;
      else if (frame.opcode === opcodes.close) {
        this.#write(opcodes.close, frame.payload);
        this.#socket.end();
      }
    }
  }

  /** Clients mask their frames, and send no large ones. */
  #nextFrame(): { readonly opcode: number; readonly payload: Buffer } | undefined {
    const buffer = this.#buffer;
    if (buffer.length < 2) return undefined;
    const short = buffer.readUInt8(1) & 0x7f;
    const [head, length] = short < 126 ? [2, short] : buffer.length < 4 ? [4, Infinity] : [4, buffer.readUInt16BE(2)];
    const end = head + 4 + length;
    if (buffer.length < end) return undefined;
    const mask = buffer.subarray(head, head + 4);
    const payload = Buffer.from(buffer.subarray(head + 4, end).map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
    this.#buffer = buffer.subarray(end);
    return { opcode: buffer.readUInt8(0) & 0x0f, payload };
  }

  #write(opcode: number, payload: Buffer): void {
    if (this.isSilent || this.#socket.destroyed || this.#socket.writableEnded) return;
    const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65_536 ? 4 : 10);
    head.writeUInt8(0x80 | opcode, 0);
    if (payload.length < 126) head.writeUInt8(payload.length, 1);
    else if (payload.length < 65_536) {
      head.writeUInt8(126, 1);
      head.writeUInt16BE(payload.length, 2);
    } else {
      head.writeUInt8(127, 1);
      head.writeBigUInt64BE(BigInt(payload.length), 2);
    }
    this.#socket.write(Buffer.concat([head, payload]));
  }
}
