/**
 * Client of the capability socket inside the jail. A call returns `{ text, ref? }`: a long result is in the file
 * `ref.path`, and `text` is its beginning. Refusals throw an Error with the server's message.
 */
export const javascriptClient = `
import { connect } from 'node:net';
const once = (line) => new Promise((resolve, reject) => {
  const socket = connect(process.env.GATEHOUSE_ORCH_SOCKET);
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (part) => { text += part; });
  socket.on('error', reject);
  socket.on('close', () => {
    try { resolve(JSON.parse(text)); } catch { reject(new Error('No answer from the daemon')); }
  });
  socket.write(line + '\\n');
});
const ask = async (method, params) => {
  const line = JSON.stringify({ bearer: process.env.GATEHOUSE_CAP_LEASE, method, params });
  for (;;) {
    const reply = await once(line);
    if (reply.error === undefined) return reply.result;
    if (reply.error.code !== 'rate_limited' || !(reply.error.retryAfterMs <= 15000)) {
      const error = new Error(reply.error.message);
      error.code = reply.error.code;
      throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, reply.error.retryAfterMs));
  }
};
globalThis.tools = Object.freeze({
  call: (tool, args = {}) => ask('tool.invoke', { tool, args }),
  method: (name, params = {}) => ask(name, params),
});
`;

/** The client for Python; the script itself comes from standard input. */
export const pythonClient = `
import json, os, socket, sys, time
class ToolError(Exception):
    pass
class tools:
    @staticmethod
    def _once(line):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ['GATEHOUSE_ORCH_SOCKET'])
            connection.sendall(line.encode() + b'\\n')
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return json.loads(b''.join(parts))
    @staticmethod
    def method(name, params={}):
        line = json.dumps({'bearer': os.environ['GATEHOUSE_CAP_LEASE'], 'method': name, 'params': params})
        while True:
            reply = tools._once(line)
            if 'error' not in reply:
                return reply['result']
            error = reply['error']
            if error['code'] != 'rate_limited' or error.get('retryAfterMs', 99999) > 15000:
                raise ToolError(error['message'])
            time.sleep(error['retryAfterMs'] / 1000)
    @staticmethod
    def call(tool, args={}):
        return tools.method('tool.invoke', {'tool': tool, 'args': args})
exec(compile(sys.stdin.read(), 'script.py', 'exec'), {'__name__': '__main__', 'tools': tools, 'ToolError': ToolError})
`;
