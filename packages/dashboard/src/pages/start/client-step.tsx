import { t, tx } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button } from '../../ui/parts.tsx';

/** Clients that most people look for; `gatehouse connect --list` has all. */
const clients = [
  { title: t('Codex CLI'), command: 'connect codex --write' },
  { title: t('Claude Code'), command: 'connect claude-code --write' },
  { title: 'opencode', command: 'connect opencode --write' },
  { title: t('OpenAI SDK'), command: 'connect openai' },
  { title: t('All clients'), command: 'connect --list' },
] as const;

/** Lines to copy: each command makes a token for one client, and writes or prints its configuration. */
export function ClientStep({ onNext }: { readonly onNext: () => void }) {
  const { status } = useSession();
  const home = homeFlag(status?.configPaths[0]);
  return (
    <div className="start-form">
      <p>{t('Run one of these in the folder of Gatehouse. It makes a token for this client alone, and writes or prints its configuration.')}</p>
      <ul className="start-lines">
        {clients.map(({ title, command }) => {
          const line = `npx gatehouse ${command}${home}`;
          return (
            <li key={title} className="start-line">
              <span>{title}</span>
              <code>{line}</code>
              <CopyButton text={line} label={t('Copy')} />
            </li>
          );
        })}
        <li className="start-line">
          <span>{t('Base URL')}</span>
          <code>{`${location.origin}/v1`}</code>
          <CopyButton text={`${location.origin}/v1`} label={t('Copy')} />
        </li>
      </ul>
      <p className="hint">
        {tx('For any other OpenAI-style client take the base URL and a token from {link}. This step is done when the first one exists.', {
          link: <PageLink to="/tokens">{t('Tokens')}</PageLink>,
        })}
      </p>
      <div className="start-actions">
        <Button onClick={onNext}>{t('Continue')}</Button>
      </div>
    </div>
  );
}

/** The command finds the home folder on its own when it has the usual name. */
function homeFlag(configFile: string | undefined): string {
  const home = configFile?.replace(/\/[^/]*$/, '');
  return home === undefined || home.endsWith('/.gatehouse') ? '' : ` ${t("--home '{home}'", { home: home.replaceAll("'", String.raw`'\''`) })}`;
}
