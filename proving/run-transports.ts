import { proveDoctorRuns } from './doctor-runs.ts';
import { proveConnectedClients } from './connected-clients.ts';
import { counts, printFindings, type ProofOptions, type Proofs, total } from './lib/proof.ts';
import { proveSlowClients } from './r18-slow-clients.ts';
import { proveMalformed } from './r21-malformed.ts';
import { proveFrames } from './r22-frames.ts';
import { proveOutwardRequests } from './r25-outward-requests.ts';
import { provePaths } from './r26-paths.ts';
import { proveSpecialFiles } from './r26-special-files.ts';
import { proveBrowserAttacks } from './r30-browser-attacks.ts';
import { proveGuessing } from './r31-guessing.ts';
import { proveSkillVetting } from './r35-skill-vetting.ts';
import { proveBrowserCrashes } from './browser-crashes.ts';
import { proveKnowledgeFolder } from './knowledge-folder.ts';
import { proveDocumentBombs } from './document-bombs.ts';
import { measureBrowser } from './browser-figures.ts';
import { proveBrowserOrders } from './browser-orders.ts';
import { proveBrowserTasks } from './browser-tasks.ts';
import { measureChatFrames } from './chat-frames.ts';
import { type ChatPageFigures, chatPageMissing, measureChatPage } from './chat-page.ts';
import { proveTerminalDrives } from './terminal-drives.ts';

/** The full forms of the proofs on transports: slow clients, malformed bytes and values, frames, pages of other sites, guessing. */
export function transportProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async clients() {
      const { done, wrong, missing } = await proveConnectedClients({ progress });
      printFindings([...wrong, ...missing]);
      const broken = await proveConnectedClients({ only: ['pi'], broken: 'compat-of-the-gateway-only' });
      return {
        promise: 'Coding clients work with a token of `gatehouse connect`, and a default token leads to a helpful error',
        figure: `${Object.entries(done)
          .map(([id, what]) => `${id} (${what.join(', ')})`)
          .join(', ')}: ${wrong.length} failures, ${missing.length} not installed`,
        caught: `the setting of the token is ignored: ${broken.wrong.length} failures of pi`,
        good: wrong.length === 0 && missing.length === 0 && broken.wrong.length > 0,
      };
    },
    async r18() {
      const { header, body, good } = await proveSlowClients({ each: 200, progress });
      printFindings(good.failed);
      const broken = await proveSlowClients({ each: 200, broken: 'default-timeouts', progress });
      return {
        promise: 'Clients that send a byte at a time are gone within 12 s, and other clients are not affected',
        figure: `${header.opened} slow headers, the last gone after ${header.slowestMs} ms (${counts(header.answers)}), ${body.opened} slow bodies, the last after ${body.slowestMs} ms (${counts(body.answers)}): ${header.left + body.left} left; ${good.requests} requests of others meanwhile, p99 ${good.p99Ms} ms, ${good.failed.length} failed`,
        caught: `default time limits of Node: ${broken.header.left} slow headers and ${broken.body.left} slow bodies left`,
        // Of clients that have shown no token the daemon keeps 64 when others connect.
        good: header.left + body.left + good.failed.length === 0 && good.p99Ms < 100 && broken.header.left > 50 && broken.body.left > 150,
      };
    },
    async r21() {
      const report = await proveMalformed({ raw: 10_000, json: 10_000, seed, progress });
      printFindings(report.wrong);
      const broken = await proveMalformed({ raw: 500, json: 1_000, seed, broken: 'unguarded-parse', progress });
      return {
        promise: 'Nothing malformed makes the daemon fail, hang or crash',
        figure: `${total(report.raw)} raw requests of ${Object.keys(report.raw).length} generators, ${total(report.json)} of JSON (${counts(report.json)}): ${report.wrong.length} failures or hangs, ${report.shed} refused for load${report.ailment === '' ? '' : `; ${report.ailment}`}; answers ${counts(report.answers)}; seed ${seed}`,
        caught: `a parser that throws arbitrary errors: ${broken.wrong.length} failures`,
        good: report.wrong.length === 0 && report.ailment === '' && report.shed < 100 && broken.wrong.length > 0,
      };
    },
    async r22() {
      const report = await proveFrames({ sequences: 5_000, seed, progress });
      printFindings(report.wrong);
      const broken = await proveFrames({ sequences: 54, seed, broken: 'no-max-payload', progress });
      return {
        promise: 'Any sequence of WebSocket frames ends with the right close code',
        figure: `${total(report.sequences)} sequences of ${Object.keys(report.sequences).length} kinds: ${report.wrong.length} wrong${report.ailment === '' ? '' : `; ${report.ailment}`}; seed ${seed}`,
        caught: `no limit on messages: ${broken.wrong.length} of 54 sequences wrong`,
        good: report.wrong.length === 0 && report.ailment === '' && broken.wrong.length > 0,
      };
    },
    async r25() {
      const report = await proveOutwardRequests({ statuses: 5, slow: true });
      printFindings(report.wrong);
      const broken = await proveOutwardRequests({ statuses: 1, broken: 'lookup-only-guard' });
      return {
        promise: 'Whatever address a caller passes, and wherever an answer leads, nothing is dialled that is not public',
        figure: `${report.urls} addresses, ${total(report.cells)} requests of ${Object.keys(report.cells).length} callers (${counts(report.cells)}): ${report.wrong.length} dialled, looked up or held up`,
        caught: `a guard that checks addresses only at look-up: ${broken.wrong.length} dialled`,
        good: report.wrong.length === 0 && report.urls >= 80 && broken.wrong.length > 0,
      };
    },
    async r26() {
      const { wrong, raced, ...report } = await provePaths({ swaps: 5_000 });
      printFindings(wrong);
      const broken = await provePaths({ swaps: 0, only: ['workspace.readFile', 'ls'], broken: 'path-by-prefix' });
      return {
        promise: 'No path that a caller writes, and no link that is swapped in, leads out of a workspace',
        figure: `${report.paths} paths at ${report.routes} inputs, ${report.answers} answers with and without what they lead to; ${raced.swaps} links swapped in while ${raced.calls} calls were made, of which ${raced.through} reached the real file: ${wrong.length} escapes or differences`,
        caught: `paths compared by prefix: ${broken.wrong.length} escapes or differences`,
        good: wrong.length === 0 && report.paths >= 60 && raced.swaps > 4_500 && raced.through > 0 && broken.wrong.length > 0,
      };
    },
    async 'r26-special-files'() {
      const { wrong, ...report } = await proveSpecialFiles({ rounds: 20, raced: 12 });
      printFindings(wrong);
      const broken = await proveSpecialFiles({ rounds: 1, raced: 0, broken: 'pipes-for-git' });
      return {
        promise: 'No pipe in a workspace keeps the daemon waiting',
        figure: `${report.files} pipes, ${report.calls} calls, also while pipes are made all the time; the longest took ${report.longestMs} ms: ${wrong.length} waited or failed`,
        caught: `pipes that stay in git's way: ${broken.wrong.length} waited or failed`,
        good: wrong.length === 0 && report.files > 40 && broken.wrong.length > 0,
      };
    },
    async r30() {
      const report = await proveBrowserAttacks({ progress });
      printFindings(report.wrong);
      const broken = await proveBrowserAttacks({ broken: 'no-origin-check', progress });
      const pages =
        report.browser === undefined ? 'no Chromium here' : `${report.browser.attempts} attempts of ${report.browser.pages} pages in Chromium`;
      return {
        promise: 'No page of another site reads or changes anything',
        figure: `${report.cells} cells of ${report.cases} Origin, Host and Sec-Fetch-Site cases on every route and handshake, ${pages}: ${report.wrong.length} let in or noticed`,
        caught: `no check of the origin: ${broken.wrong.length} let in`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r35() {
      const { wrong, blocked, ...report } = await proveSkillVetting({});
      printFindings([...wrong, ...blocked]);
      const broken = await proveSkillVetting({ each: 3, broken: 'scans-what-is-shown' });
      return {
        promise: 'No malicious skill is written or loaded, for any caller, with or without force',
        figure: `${report.bad} attacks in ${report.attempts} calls, added to folders by hand, and swapped for vetted ones: ${wrong.length} written or loaded; ${report.good} honest ones: ${blocked.length} blocked`,
        caught: `a gate that checks the shown bytes and writes the received ones: ${broken.wrong.length} written or loaded`,
        good: wrong.length === 0 && blocked.length <= 3 && report.bad >= 60 && report.good >= 60 && broken.wrong.length > 0,
      };
    },
    async r31() {
      const report = await proveGuessing({ guesses: 1_000, seed, progress });
      printFindings(report.wrong);
      const broken = await proveGuessing({ guesses: 200, seed, broken: 'raw-address-key', progress });
      const locked = await proveGuessing({ guesses: 60, seed, broken: 'locked-address', progress });
      return {
        promise:
          'Ten wrong secrets a minute of one address are answered 401 and the others 429, in whatever dress it comes; the right one always works',
        figure: `${report.guesses} guesses at ${Object.keys(report.byRoute).length} routes; answered 401: ${counts(report.answered)}; ${report.wrong.length} wrong; seed ${seed}`,
        caught: `limits keyed by the spelling of the address: ${Object.values(broken.answered).join(', ')} answered 401; an address locked for its right secret too: ${locked.wrong.length} wrong`,
        good: report.wrong.length === 0 && broken.wrong.length > 0 && locked.wrong.length > 0,
      };
    },
    async terminals() {
      const report = await proveTerminalDrives({ rounds: 20, progress });
      printFindings(report.wrong);
      const broken = await proveTerminalDrives({ rounds: 3, programs: ['python3'], broken: 'terminal-without-mark', progress });
      return {
        promise: 'A model drives Python, vi and sqlite3 on a terminal to the end, however slow the machine is',
        figure: `${report.drives} drives: ${report.wrong.length} did not get to their end`,
        caught: `an earlier prompt is taken for the answer: ${broken.wrong.length} of ${broken.drives} did not get to their end`,
        good: report.wrong.length === 0 && broken.wrong.length === broken.drives,
      };
    },
    async browser() {
      const report = await proveBrowserTasks({ progress });
      printFindings(report.wrong);
      const stale = await proveBrowserTasks({ only: /orders/, stale: true });
      return {
        promise: 'A model does tasks in a shop through the tool `browser`, with uploads, dialogs, frames and a login that a person completes',
        figure: `${report.tasks} tasks: ${report.wrong.length} did not reach their goal`,
        caught: `a model that acts on an earlier snapshot: ${stale.wrong.length} of ${stale.tasks} did not reach their goal`,
        good: report.wrong.length === 0 && stale.wrong.length === stale.tasks,
      };
    },
    async 'browser-crashes'() {
      const report = await proveBrowserCrashes({ crashes: 50, seed, progress });
      printFindings(report.wrong);
      const broken = await proveBrowserCrashes({ crashes: 1, seed, hangs: true, broken: 'browser-unwatched' });
      return {
        promise:
          'A browser that is killed or stops answering is reported within 10 s, starts again at the next call, and leaves no process and no profile',
        figure: `${report.crashes} crashes, every fourth a hang: reported after ${report.slowestMs.reported} ms at most, a page open again after ${report.slowestMs.again} ms at most, ${report.wrong.length} wrong; seed ${seed}`,
        caught: `nobody asks a silent browser: ${broken.wrong.length} of ${broken.crashes} hangs reported too late`,
        good: report.wrong.length === 0 && broken.wrong.length === broken.crashes,
      };
    },
    async 'browser-orders'() {
      const report = await proveBrowserOrders({ pages: 100, progress });
      printFindings(report.acted);
      const trusting = await proveBrowserOrders({ pages: 10, trusting: true });
      return {
        promise: 'Text of a page that orders actions causes none without an approval, also when the model obeys it',
        figure: `${report.pages} pages with 10 kinds of orders, ${report.obeyed} obeyed by the model: ${report.acted.length} acted`,
        caught: `a rule that lets tainted turns act: ${trusting.acted.length} of ${trusting.obeyed} acted, ${trusting.alwaysAsked} of the others ask always`,
        good: report.acted.length === 0 && report.obeyed === report.pages && trusting.acted.length >= (trusting.obeyed - trusting.alwaysAsked) * 0.9,
      };
    },
    async 'browser-figures'() {
      const report = await measureBrowser({ snapshots: 9 });
      printFindings(report.wrong);
      return {
        promise:
          'A browser is affordable: a snapshot of 10,000 nodes takes at most 300 ms (of processor time where other work waits for the processors), and all processes with a page of the shop have at most 400 MB',
        figure: `snapshot of ${report.nodes} nodes: ${report.snapshotMs} ms (median), with ${report.snapshotCpuMs} ms of processor time, at a load of ${report.load.toFixed(1)}; proportional set size with the shop: ${report.shopMb} MB`,
        caught: '-',
        good: report.wrong.length === 0,
      };
    },
    async 'chat-page'() {
      const promise =
        'Lighthouse rates the chat page as it opens 95 or better for performance and accessibility, with simulated throttling (medians of 5 runs)';
      const missing = await chatPageMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const report = await measureChatPage({ runs: 5, progress });
      printFindings(report.wrong);
      const broken = await measureChatPage({ runs: 1, only: ['a new chat'], broken: 'pages-uncompressed' });
      const said = ({ performance, accessibility, largestMs, blockingMs }: ChatPageFigures): string =>
        `${performance} and ${accessibility}, the largest text after ${largestMs} ms, ${blockingMs} ms blocked`;
      return {
        promise,
        figure: `${Object.entries(report.pages)
          .map(([page, figures]) => `${page}: ${said(figures)}`)
          .join('; ')}; ${report.left} runs on a busy machine left out`,
        caught: `files without compression: ${broken.pages['a new chat']?.performance} for performance`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'chat-frames'() {
      const report = await measureChatFrames({ tokens: 4_000 });
      printFindings(report.wrong);
      const { firstTokenMs, frameMs, longestTaskMs, load, tokens } = report;
      return {
        promise:
          'An answer of 200 tokens a second is shown smoothly: its first token 50 ms after its arrival at most, 99 of 100 frames within 50 ms or as on an empty page (where no other work waits for the processors), and no task of the page takes 50 ms',
        figure: `${tokens} tokens: the first one shown after ${firstTokenMs} ms, 99 of 100 frames within ${frameMs.streaming} ms, ${frameMs.empty} ms on an empty page, the longest task ${longestTaskMs} ms of processor time, at a load of ${load.toFixed(1)}`,
        caught: '-',
        good: report.wrong.length === 0,
      };
    },
    async 'document-bombs'() {
      const report = await proveDocumentBombs({ rounds: 2, progress });
      printFindings(report.wrong);
      const broken = await proveDocumentBombs({ rounds: 1, broken: 'documents-in-the-daemon', progress });
      return {
        promise:
          'Archives, documents and images that unpack to far more than they are never hold the event loop over 50 ms, nor the daemon over 300 MB',
        figure: `${report.bombs} bombs: the main thread worked ${report.longestMs} ms at a time at most, the daemon had ${report.documentsMb} MB at most with documents and ${report.imagesMb} MB with images; ${report.wrong.length} wrong`,
        caught: `documents are read on the event loop: ${broken.wrong.length} wrong, ${broken.longestMs} ms at a time`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'knowledge-folder'() {
      const report = await proveKnowledgeFolder({ files: 10_000, progress });
      printFindings(report.wrong);
      const broken = await proveKnowledgeFolder({ files: 100, broken: 'subfolders-unwatched' });
      return {
        promise:
          'A folder of 10,000 files is indexed and watched with all its subfolders; the main thread works at most 50 ms at a time, the daemon has at most 400 MB',
        figure: `${report.files} files in ${report.folders} folders: indexed after ${Math.round(report.indexedMs / 1_000)} s, compared in ${report.comparedMs} ms, a change in a subfolder found after ${report.noticedMs} ms; main thread ${report.longestMs} ms at a time, ${report.peakMb} MB; ${report.wrong.length} wrong`,
        caught: `subfolders are not watched: ${broken.wrong.length} wrong`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async doctor() {
      const report = await proveDoctorRuns({ runs: 1_000, atOnce: 3, progress });
      printFindings(report.wrong);
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
