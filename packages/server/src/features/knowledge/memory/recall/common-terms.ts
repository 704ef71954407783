import { stem } from '../../../../kernel/stem.ts';

/**
 * Words that occur in many texts whatever their topic: a match means little. The first lines are function words of other
 * languages, which are not stop words because some of them mean something in English.
 */
const common = `aber als am auch auf aus bei bin bis bist da damit das dass dein dem den der des dich die dir doch du ein eine einem einen einer es euch für hab habe haben hat hatte hier ich
  ihm ihn ihr im ist ja jetzt kann kein keine mal man mein meine mich mir mit nach nicht noch nur oder ohne schon sein seine sich sie sind so über um und uns unser vom von vor
  war waren warum was weil welche wenn wer werden wie wieder wir wird wo zu zum zur
  au aux avec avez avoir ce cela ces cet cette comme comment dans de des dont du elle elles en est et être eu il ils je la le les leur leurs lui ma mais me mes moi mon ne nos
  notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle qui sa sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous
  al algo aquí así como con cómo cuando cuándo del desde donde dónde el ella ellos era eres es eso esta está este esto estoy fue ha hace hay la las lo los más mi mis muy nada
  no nos para pero por porque puede qué quién se ser si sin sobre solo su sus también te tiene todo tu una uno unos y ya yo
  alla anche che chi ci come cosa da dei del della delle di dove e gli ha ho il io la le lei lo loro ma mi mia mio nel nella non o per perché più quando questa questo sei si sono
  sua suo tra un una
  ao as com da das de dele do dos ela ele em essa esse está eu foi isso mais mas meu minha na não nas nem no nos o os ou para pela pelo por porque quem se sem ser seu sua são
  também te tem um uma você
  aan al als bij dan dat de deze die dit door een en er geen haar heb heeft hem het hij hoe hun ik je kan maar me men met mijn naar niet nog nu of om onder ons ook op te toch
  tot uit van veel voor waar wat we wel werd wie wij ze zich zij zijn
  able actual add allow almost alone along already although always amount another answer anybody anyone anything around ask available away back bad bear become begin believe
  best better big bit book both bring build call came cannot care carry case cause certain chance change check choose clear close code come common complete contain copy correct
  cost couple course create current cut date day deal decide default describe detail die different difference direct double draw drop each early easy effect eight either eleven
  end enough especially even evening everybody every everyone everything exact example except expect explain fact fail fall false far feel fifth fifty file fill final find fine
  finish first five fix follow force form former forty found four fourth free friday full function fun gave general gives glad go goes gone good great group grow guess half
  hand handle happen happy hard head hear hello help hi high hit hold home hope hour hundred idea implement important include instead interest issue item january join keep kind
  knew know known large last late later lead learn least leave left less letter level life like likely line link list little live local long look lose lot love low made main
  make man manage many mark matter may maybe mean meet member mention message method might mind mine minute miss moment monday month morning move much must name near need
  never new next nice night nine nobody none nor normal note nothing notice number object offer often old one open option order otherwise outside own package page pair part
  particular pass past pay people perhaps person pick piece place plan play plus point possible present pretty previous print probably problem produce project promise proper
  provide public pull push put question quick quite rather reach read ready real really reason receive recent release remain remember remove report request require rest result
  return review right rise room round row run said same saturday save saw say second section see seem seen sell send sense set seven several share short show side sign similar
  simple since single six size small some somebody someone something sometimes soon sorry sort sound special specific stand start state stay step still stop story strong sunday
  support suppose sure system table take talk task team ten test text thank thing think third thirty though thought thousand three thursday time tip title today together
  told tomorrow tonight took top total toward true try tuesday turn twelve twenty two type understand unless update use user useful usual value various version view visit wait
  want was watch way wednesday week welcome well went whatever whenever whether whole wish within without word work world worse worth write wrong wrote year yes yesterday
  yet`;

/** Vocabulary of everyday life and of most programs: two of these meet in long texts by chance. */
const everyday = `account address afternoon air animal apartment app arm article baby bag bank bar basement bathroom battery bed bedroom bike bill birthday block blue board boat body boss
  bottle boy bread breakfast brother building bus business button cable cache cake calendar camera car cat cellar center centre chair channel chapter child children church city
  class client coat code coffee cold college color colour column command company computer concert config configuration connection contract cook corner council country customer
  dark data database daughter deadline desk device dinner directory doctor document dog door dress drink drive driver east email employee engine error event evening exam
  exercise eye face factory family farm father feature field fish flat flight floor flower folder food foot friend front game garden girl glass gold green ground group
  guest hair hall hardware head health heat heating holiday hospital hot hotel house husband idea image income industry input insurance internet island job key kid kitchen
  lake land language laptop law lesson library light limit list load lock log loop lunch machine mail manager map market meal meat medicine meeting memory metal milk mobile
  model money mother mountain mouth museum music musician network news north office oil operation output oven owner paint painting paper parent park parser partner party
  password patient payment pen phone photo picture pipe plane plant player police pool post power price process product program programme python queue rain record red
  restaurant river road rock role roof room row rule salad sale school science screen script sea season seat security server service shelf ship shoe shop sister size skin
  sky sleep snow software son south space speech speed sport spring staff stairs station stone store storm story stream street string student style summer sun switch teacher
  team telephone temperature theatre thread ticket token tool tour town traffic train training travel tree trip truck tv vacation value village voice wall warm water weather
  web website weekend weight west white wife wifi wind window wine winter woman wood worker yard yellow`;

export interface WordWeight {
  /** How much a common term of two short texts means, 0 to 1. */
  readonly says: number;
  /** The same for texts so long that ordinary words meet in them by chance. */
  readonly rare: number;
}

const [nothing, little, some, much] = [
  { says: 0, rare: 0 },
  { says: 0.25, rare: 0 },
  { says: 1, rare: 0.5 },
  { says: 1, rare: 1 },
];

/** Stemmed when the first text is weighed: a process that recalls nothing does not pay for it. */
let stems: { readonly common: ReadonlySet<string>; readonly everyday: ReadonlySet<string> } | undefined;
const stemsOf = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/).map(stem));

export function weightOfStem(ofWord: string): WordWeight {
  stems ??= { common: stemsOf(common), everyday: stemsOf(everyday) };
  // A single letter is the rest of a contraction.
  if (/^\p{Script=Latin}$/u.test(ofWord)) return nothing;
  if (stems.common.has(ofWord) || /^\p{N}{1,2}$/u.test(ofWord)) return little;
  return stems.everyday.has(ofWord) ? some : much;
}
