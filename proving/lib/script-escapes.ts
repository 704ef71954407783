import type { Escape, Surroundings } from './escapes.ts';

/** Methods of the gateway that no script may call. */
const methods = [
  'config.read',
  'tokens.create',
  'session.delete',
  'session.send',
  'session.spawn',
  'session.history',
  'subagent.list',
  'subagent.kill',
  'graph.execute',
  'run.list',
  'run.kill',
  'lease.revoke',
  'autonomy.evict',
  'agent.execute',
  'memory.store',
  'cron.add',
  'inbox.list',
  'admin.approval.resolve',
  'tools/call',
  '__proto__',
  'constructor',
];
const tools = [
  'exec',
  'write',
  'edit',
  'apply_patch',
  'memory_store',
  'sessions_send',
  'sessions_spawn',
  'subagents',
  'pipeline',
  'orchestrate',
  'cron',
  'message',
  'skill',
  'mcp__board--post',
  'toString',
];

/** Put before each: sends one line over the socket, with any bearer. `leaked` prints answers that should have been refused. */
const prelude = `
import { connect } from 'node:net';
import { writeFileSync, readFileSync, symlinkSync, rmSync, mkdirSync, unlinkSync, chmodSync } from 'node:fs';
import { spawn } from 'node:child_process';
const own = process.env.GATEHOUSE_CAP_LEASE, file = process.env.GATEHOUSE_ORCH_SOCKET;
const raw = (bytes, at = file) => new Promise((resolve) => {
  const socket = connect(at); let text = '';
  socket.on('data', (part) => { text += part; }).on('error', (e) => resolve(String(e.code))).on('close', () => resolve(text));
  socket.on('connect', () => { socket.write(bytes); });
});
const ask = (method, params = {}, bearer = own, more = {}) => raw(JSON.stringify({ bearer, method, params, ...more }) + '\\n');
const leaked = (what, text) => { if (text.startsWith('{"result"')) console.log('GIVEN: ' + what + ' ' + text.slice(0, 200)); };
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;

const program = (script: string, more: Omit<Escape, 'argv'> = {}): Escape => ({ argv: [prelude + script], ...more });
const isScript = ({ argv }: Escape): boolean => argv.length === 1 && argv[0]?.startsWith(prelude) === true;

/** Turns a program into a script: those for the socket are scripts, a command is started by one. */
export function scriptOf(escape: Escape): string {
  if (isScript(escape)) return escape.argv[0] ?? '';
  const [command, ...args] = escape.argv;
  const options = { stdio: [escape.stdin === undefined ? 'ignore' : 'pipe', 'inherit', 'inherit'], input: escape.stdin };
  return `import { spawnSync } from 'node:child_process';
const { status } = spawnSync(${JSON.stringify(command)}, ${JSON.stringify(args)}, ${JSON.stringify(options)});
process.exitCode = status ?? 1;`;
}

/** Programs that misuse the resources of a script: its socket, its lease, its tools. */
export function scriptEscapes({ outside, port, home }: Surroundings): Readonly<Record<string, Escape>> {
  return {
    'asks for methods': program(`for (const name of ${JSON.stringify(methods)}) leaked(name, await ask(name));`),
    'asks for tools': program(`for (const tool of ${JSON.stringify(tools)}) leaked(tool, await ask('tool.invoke', { tool, args: {} }));`),
    'forges a bearer': program(
      `for (const bearer of [own.slice(1), own + 'x', own.toUpperCase(), 'x'.repeat(43), '*', 'operator']) leaked('forged', await ask('session.status', {}, bearer));`,
      { harmless: true },
    ),
    'leaves its bearer': program(`writeFileSync('data/lease', own); console.log((await ask('session.status')).slice(0, 20));`),
    'uses the bearer of an ended script': program(`leaked('ended', await ask('session.status', {}, readFileSync('data/lease', 'utf8')));`),
    'uses its bearer after its end': program(
      `spawn('sh', ['-c', \`setsid node -e "const s=require('net').connect(process.env.GATEHOUSE_ORCH_SOCKET);setTimeout(()=>s.write(JSON.stringify({bearer:process.env.GATEHOUSE_CAP_LEASE,method:'session.status'})+'\\\\n'),600);s.on('data',()=>require('fs').writeFileSync('data/late','x'))"\`], { detached: true, stdio: 'ignore' }).unref();`,
    ),
    'says who it is': program(
      `for (const who of [{ _agentId: 'other' }, { _identity: { scopes: ['*'] } }, { agentCaller: null }]) leaked('admin', await ask('tokens.list', who, own, who));
leaked('another caller', await ask('tool.invoke', { tool: 'ls', args: {}, principalId: 'token:root' }));`,
    ),
    'sends a long line': program(`console.log((await raw('{"bearer":"' + 'x'.repeat(70_000))).slice(0, 200)); await raw('y'.repeat(64_000_000));`),
    'sends a deep line': program(`console.log((await raw('['.repeat(65_000) + '\\n')).slice(0, 200));`),
    'sends garbage': program(
      `for (const bytes of ['\\n', 'null\\n', '{}\\n', '[1]\\n', Buffer.from([0, 255, 10]), '{"bearer":1,"method":2}\\n', '{"__proto__":{"a":1},"bearer":"x","method":"y"}\\n']) leaked('garbage', await raw(bytes));`,
    ),
    'sends slowly': program(
      `const s = connect(file); s.on('error', () => {}); for (const c of '{"bearer":"' + own) { s.write(c); await wait(100); }`,
    ),
    'opens connections without end': program(
      `for (let n = 0; n < 4000; n += 1) connect(file).on('error', () => {}).on('data', () => {}); await wait(1500);`,
    ),
    'calls without end': program(
      `for (const until = Date.now() + 1500; Date.now() < until;) await Promise.all(Array.from({ length: 50 }, () => ask('session.status')));`,
    ),
    'never reads': program(
      `writeFileSync('data/big', 'x'.repeat(30_000)); for (let n = 0; n < 200; n += 1) { const s = connect(file).on('error', () => {}); s.write(JSON.stringify({ bearer: own, method: 'tool.invoke', params: { tool: 'read', args: { path: 'data/big' } } }) + '\\n'); s.pause(); } await wait(1500);`,
    ),
    'takes the place of the socket': program(
      `for (const go of [() => unlinkSync(file), () => chmodSync(file, 0o777), () => rmSync('/run/gatehouse', { recursive: true })]) try { go(); } catch (e) { console.log(e.code); }
(await import('node:net')).createServer().on('error', (e) => console.log(e.code)).listen(file); await wait(200); process.exit(0);`,
    ),
    'still has the socket': program(
      `const text = await ask('session.status'); if (!text.startsWith('{"result"')) console.log('GIVEN: no socket ' + text);`,
    ),
    'connects to the other sockets': program(
      `for (const at of ['${home}/gatehouse.sock', '${home}/capability.sock', '/run/gatehouse.sock', '/run/gatehouse/gatehouse.sock', '${outside}/socket']) console.log((await raw('GET /health HTTP/1.0\\r\\n\\r\\n', at)).slice(0, 20));`,
    ),
    'reads outside with a tool': program(
      `try { symlinkSync('${outside}', 'data/way'); } catch {}
for (const path of ['${outside}/secret', '../../config.yaml', '/etc/passwd', 'data/way/secret', '${home}/token']) {
  console.log((await ask('tool.invoke', { tool: 'read', args: { path } })).slice(0, 300));
  console.log((await ask('tool.invoke', { tool: 'grep', args: { pattern: '.', path } })).slice(0, 300));
}`,
    ),
    'fetches from this machine with a tool': program(
      `for (const url of ['http://127.0.0.1:${port}/', 'http://[::1]:${port}/', 'http://localhost:${port}/', 'file://${outside}/secret']) console.log((await ask('tool.invoke', { tool: 'web_fetch', args: { url } })).slice(0, 200));`,
    ),
    'has a result written outside': program(
      `writeFileSync('data/big', ('a line' + '.'.repeat(150) + '\\n').repeat(500)); rmSync('output/scripts', { recursive: true, force: true }); mkdirSync('output', { recursive: true }); symlinkSync('${outside}', 'output/scripts');
console.log((await ask('tool.invoke', { tool: 'grep', args: { pattern: 'a line', path: 'data/big' } })).slice(-200));
console.log((await ask('tool.invoke', { tool: 'read', args: { path: 'data/big' } })).slice(-200)); rmSync('output/scripts');`,
    ),
    'writes its output without end': program(
      `for (;;) if (!process.stdout.write('x'.repeat(65_536))) await new Promise((resolve) => process.stdout.once('drain', resolve));`,
    ),
  };
}
