import { proveDoctorRuns } from './doctor-runs.ts';
import { proveConnectedClients } from './connected-clients.ts';
import { counts, type ProofOptions, type Proofs, tell, total } from './lib/proof.ts';
import { proveSlowClients } from './r18-slow-clients.ts';
import { proveMalformed } from './r21-malformed.ts';
import { proveFrames } from './r22-frames.ts';
import { proveOutwardRequests } from './r25-outward-requests.ts';
import { provePaths } from './r26-paths.ts';
import { proveSpecialFiles } from './r26-special-files.ts';
import { proveBrowserAttacks } from './r30-browser-attacks.ts';
import { proveGuessing } from './r31-guessing.ts';
import { proveSkillVetting } from './r35-skill-vetting.ts';

/** The full forms of what attacks the doors: slow clients, malformed bytes and values, frames, pages of other sites, guessing. */
export function doorProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async clients() {
      const { done, wrong, missing } = await proveConnectedClients({ progress });
      tell([...wrong, ...missing]);
      const broken = await proveConnectedClients({ only: ['pi'], broken: 'compat-of-the-gateway-only' });
      return {
        promise: 'Coding clients work with a token of `gatehouse connect`, and a default token tells them what to do',
        figure: `${Object.entries(done)
          .map(([id, what]) => `${id} (${what.join(', ')})`)
          .join(', ')}: ${wrong.length} failures, ${missing.length} not installed`,
        caught: `the setting of the token is ignored: ${broken.wrong.length} failures of pi`,
        good: wrong.length === 0 && missing.length === 0 && broken.wrong.length > 0,
      };
    },
    async r18() {
      const { header, body, good } = await proveSlowClients({ each: 200, progress });
      tell(good.failed);
      const broken = await proveSlowClients({ each: 200, broken: 'default-timeouts', progress });
      return {
        promise: 'Clients that send a byte at a time are gone within 12 s, and nobody else feels them',
        figure: `${header.opened} slow headers, the last gone after ${header.slowestMs} ms (${counts(header.answers)}), ${body.opened} slow bodies, the last after ${body.slowestMs} ms (${counts(body.answers)}): ${header.left + body.left} left; ${good.requests} requests of others meanwhile, p99 ${good.p99Ms} ms, ${good.failed.length} failed`,
        caught: `time limits of node: ${broken.header.left} slow headers and ${broken.body.left} slow bodies left`,
        good: header.left + body.left + good.failed.length === 0 && good.p99Ms < 100 && broken.header.left === 200 && broken.body.left > 150,
      };
    },
    async r21() {
      const report = await proveMalformed({ raw: 10_000, json: 10_000, seed, progress });
      tell(report.wrong);
      const broken = await proveMalformed({ raw: 500, json: 1_000, seed, broken: 'unguarded-parse', progress });
      return {
        promise: 'Nothing malformed makes the daemon fail, hang or fall',
        figure: `${total(report.raw)} raw requests of ${Object.keys(report.raw).length} generators, ${total(report.json)} of JSON (${counts(report.json)}): ${report.wrong.length} failures or hangs, ${report.shed} refused for load${report.ailment === '' ? '' : `; ${report.ailment}`}; answers ${counts(report.answers)}; seed ${seed}`,
        caught: `a parser that throws what it likes: ${broken.wrong.length} failures`,
        good: report.wrong.length === 0 && report.ailment === '' && report.shed < 100 && broken.wrong.length > 0,
      };
    },
    async r22() {
      const report = await proveFrames({ sequences: 5_000, seed, progress });
      tell(report.wrong);
      const broken = await proveFrames({ sequences: 54, seed, broken: 'no-max-payload', progress });
      return {
        promise: 'Any sequence of WebSocket frames ends with the right close code',
        figure: `${total(report.sequences)} sequences of ${Object.keys(report.sequences).length} kinds: ${report.wrong.length} wrong${report.ailment === '' ? '' : `; ${report.ailment}`}; seed ${seed}`,
        caught: `no bound on messages: ${broken.wrong.length} of 54 sequences wrong`,
        good: report.wrong.length === 0 && report.ailment === '' && broken.wrong.length > 0,
      };
    },
    async r25() {
      const report = await proveOutwardRequests({ statuses: 5, slow: true });
      tell(report.wrong);
      const broken = await proveOutwardRequests({ statuses: 1, broken: 'lookup-only-guard' });
      return {
        promise: 'Whatever address somebody gives, and wherever an answer leads, nothing is dialled that is not public',
        figure: `${report.urls} addresses, ${total(report.cells)} requests of ${Object.keys(report.cells).length} callers (${counts(report.cells)}): ${report.wrong.length} dialled, looked up or held up`,
        caught: `a guard that checks what names stand for alone: ${broken.wrong.length} dialled`,
        good: report.wrong.length === 0 && report.urls >= 80 && broken.wrong.length > 0,
      };
    },
    async r26() {
      const { wrong, raced, ...report } = await provePaths({ swaps: 5_000 });
      tell(wrong);
      const broken = await provePaths({ swaps: 0, only: ['workspace.readFile', 'ls'], broken: 'path-by-prefix' });
      return {
        promise: 'No path that anybody writes, and no link that is put in its way, leads out of a workspace',
        figure: `${report.paths} paths at ${report.doors} inputs, ${report.answers} answers with and without what they lead to; ${raced.swaps} links swapped in while ${raced.calls} calls were made, of which ${raced.through} reached the real file: ${wrong.length} escapes or differences`,
        caught: `paths that are compared by how they begin: ${broken.wrong.length} escapes or differences`,
        good: wrong.length === 0 && report.paths >= 60 && raced.swaps > 4_500 && raced.through > 0 && broken.wrong.length > 0,
      };
    },
    async 'r26-special-files'() {
      const { wrong, ...report } = await proveSpecialFiles({ rounds: 20, raced: 12 });
      tell(wrong);
      const broken = await proveSpecialFiles({ rounds: 1, raced: 0, broken: 'pipes-for-git' });
      return {
        promise: 'No pipe that is left in a workspace keeps the daemon waiting',
        figure: `${report.files} pipes, ${report.calls} calls, also while pipes are made all the time; the longest took ${report.longestMs} ms: ${wrong.length} waited or failed`,
        caught: `pipes that stay in git's way: ${broken.wrong.length} waited or failed`,
        good: wrong.length === 0 && report.files > 40 && broken.wrong.length > 0,
      };
    },
    async r30() {
      const report = await proveBrowserAttacks({ progress });
      tell(report.wrong);
      const broken = await proveBrowserAttacks({ broken: 'no-origin-check', progress });
      const pages =
        report.browser === undefined ? 'no Chromium here' : `${report.browser.attempts} attempts of ${report.browser.pages} pages in Chromium`;
      return {
        promise: 'No page of another site gets anything or changes anything',
        figure: `${report.cells} cells of ${report.cases} Origin, Host and Sec-Fetch-Site cases on every route and handshake, ${pages}: ${report.wrong.length} let in or noticed`,
        caught: `no look at the origin: ${broken.wrong.length} let in`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r35() {
      const { wrong, blocked, ...report } = await proveSkillVetting({});
      tell([...wrong, ...blocked]);
      const broken = await proveSkillVetting({ each: 3, broken: 'scans-what-is-shown' });
      return {
        promise: 'No skill that attacks is written or loaded, through any door, with or without force',
        figure: `${report.bad} attacks in ${report.attempts} calls, laid into folders by hand, and put in the place of vetted ones: ${wrong.length} written or loaded; ${report.good} honest ones: ${blocked.length} blocked`,
        caught: `a gate that looks at what is shown and writes what came: ${broken.wrong.length} written or loaded`,
        good: wrong.length === 0 && blocked.length <= 3 && report.bad >= 60 && report.good >= 60 && broken.wrong.length > 0,
      };
    },
    async r31() {
      const report = await proveGuessing({ guesses: 1_000, seed, progress });
      tell(report.wrong);
      const broken = await proveGuessing({ guesses: 200, seed, broken: 'raw-address-key', progress });
      const locked = await proveGuessing({ guesses: 60, seed, broken: 'locked-address', progress });
      return {
        promise:
          'Ten wrong secrets a minute of one address are answered 401 and the others 429, in whatever dress it comes; the right one always works',
        figure: `${report.guesses} guesses at ${Object.keys(report.byDoor).length} doors; answered 401: ${counts(report.answered)}; ${report.wrong.length} wrong; seed ${seed}`,
        caught: `limits kept under the address as it is spelled: ${Object.values(broken.answered).join(', ')} answered 401; an address locked for its right secret too: ${locked.wrong.length} wrong`,
        good: report.wrong.length === 0 && broken.wrong.length > 0 && locked.wrong.length > 0,
      };
    },
    async doctor() {
      const report = await proveDoctorRuns({ runs: 1_000, atOnce: 3, progress });
      tell(report.wrong);
      const broken = await proveDoctorRuns({ runs: 3, atOnce: 3, broken: ['pausing-doctor', 'no-keep-alive'], progress });
      return {
        promise: '`gatehouse doctor` never fails on a healthy installation',
        figure: `${report.runs} runs, three at a time, half of them with a running daemon: ${report.wrong.length} failed`,
        caught: `nothing keeps the process alive: ${broken.wrong.length} of ${broken.runs} failed`,
        good: report.wrong.length === 0 && broken.wrong.length === broken.runs,
      };
    },
  };
}
