// Types of the data that the page's scripts exchange with the server, with files and with each other.
// Only the type checker reads this file: `python -m tests.interface.check_scripts`.

/** A probability `p`. It is an upper bound if `bound`, and a lower one if `atLeast`. */
export interface Odds {
  p: number;
  bound?: boolean;
  atLeast?: boolean;
  /** The upper bound of a probability whose lower bound `p` is 0, once the search for words has ended. */
  most?: number;
  /** The model's own probability, shown where the asked temperature and top-p cannot be applied. */
  raw?: boolean;
}

/** An unpacked node of the tree: sums at 20 temperatures, and how far the likeliest tokens lie below the first. */
export interface UnpackedNode { heats: Float64Array; drops: Float64Array }

/** The odds of a token by its raw log-probability. */
export type OddsFunction = (logprob: number) => Odds;

// Views: branches as the server sends them.

/** One button of a row: its text, and the number of the branch's tokens up to its end. */
export interface Piece {
  text: string;
  tokens: number;
  /** What it completes: 0 nothing, 1 a word, 2 a clause, 3 a sentence, 4 a line. */
  ends: number;
}

/** How likely a next word is: a probability, and how much it may be wrong, up or down. */
export interface WordShare { share: number; error: number }

/** The first word of a branch with its share; `text` is empty where the text ends. `tokens` of the branch spell it. */
export interface BranchWord extends WordShare { text: string; tokens: number }

/** A continuation. `at` holds the index of the view's node before each token; views with odds of words have `next_word`. */
export interface Branch {
  next_word?: BranchWord;
  ids: number[];
  logprobs: number[];
  at?: number[];
  pieces: Piece[];
  ended: boolean;
  healed: boolean;
  /** Whether it ends here because it would repeat itself. Older views do not say so. */
  repeats?: boolean;
  /** The tokens that hold the word that the branches go towards, as [start, end). */
  word?: Span;
  /** The tokens of a text that the person has put in, as [start, end). */
  edited?: Span;
  /** The tokens that the person had written into it before, each as a span. */
  earlier_edits?: Span[];
}

/** How likely the text is to reach a word within so many tokens: bounds of the probability. */
export interface WordOdds { word: string; within: number; low: number; high: number }

/** A change of a row: the row's tokens, those that stay, and the text that follows them; `earlier`: what earlier changes put into those that stay. */
export interface RowEdit { row: number[]; before: number[]; text: string; earlier?: Span[] }

/** The detail of an `edit` event. A listener that cancels the event may say why in `because`. */
export interface RowEditDetail { revision: number; pinned: boolean; edit: RowEdit; because?: string }

/** What is left of an accepted branch, with packed nodes of its own where they are known. */
export interface BranchRemainder extends Branch { nodes?: string[] }

/** A beginning that no branch has; `text` is null where it holds no whole character. `next_word`: its share as a whole word. */
export interface OtherBeginning {
  next_word?: WordShare;
  ids: number[];
  logprobs: number[];
  at?: number[];
  text: string | null;
  end: boolean;
}


/** The options a view was computed with; `banned` is the number of banned tokens. */
export interface ViewOptions {
  k: number;
  depth: number;
  mode: string;
  until: string;
  temperature: number;
  top_p: number;
  seed: number;
  /** What shares are the probabilities of; tokens in views of earlier versions. */
  odds?: string;
  banned?: number;
  towards?: string;
  avoid?: string;
}

export interface ViewCost { passes: number; tokens: number; seconds: number }

/** All branches of one text, as the server sends them. `nodes` are packed predictions (see `reheated_odds.js`). */
export interface View {
  branches: Branch[];
  nodes: string[];
  rest: OtherBeginning[];
  /** Likely banned tokens, likeliest first, each with the probability that it would have. Older views have no such list. */
  without?: {id: number, text: string, probability: number}[];
  /** The typed characters that every branch begins with (token healing). */
  given: string;
  /** The re-opened token: its log-probability among the tokens that begin with its text, and the nodes of it and of the token after it. */
  typed?: {id: number, logprob: number, at: number[]};
  /** The first character of the text that the model reads. */
  seen_from: number;
  asked: ViewOptions;
  cost?: ViewCost;
  /** Tokens that separate requests, one for each branch, would read. */
  alone?: number;
  word?: WordOdds;
}

// Requests and responses.

/** A token that is never to be offered again. */
export interface BannedToken { id: number; text: string }

/** An accepted piece as a request names it: the character where it starts, its ids, whether it was healed. */
export type AcceptedPiece = [start: number, ids: number[], healed: boolean];

/** An accepted piece that is still unchanged in a text: its characters, its ids, whether it was healed. */
export interface AcceptedSpan { start: number; end: number; ids: number[]; healed: boolean }

export interface Message { role: string; content: string }

/** One of the columns in which a text goes on side by side; without a temperature of its own it has the page's. */
export interface Column { instruction: string; temperature: number | null }

/** The column of a request: null where the text goes on as it is. */
export interface RequestColumn { instruction: string | null; temperature?: number | null }

/** The views of a response with columns, and for each column the index of its own. */
export interface ColumnViews { views: (View | null)[]; columns: number[] }

/** What the model is told beside the text. */
export interface PromptFields {
  instruction?: string | null;
  source?: string | null;
  role?: string;
  messages?: Message[];
  banned?: number[];
  columns?: RequestColumn[];
}

/** A request of a page. Each tab sends the fields that it has. */
export interface BranchRequest extends PromptFields, Partial<ViewOptionsOfRequest> {
  revision: number;
  text?: string;
  accepted?: AcceptedPiece[];
  edits?: RowEdit[];
  /** Lab: the options of the experiment. */
  experiment?: Record<string, string | number | boolean>;
  /** Highlights tab: the character where branches replace the text, and the number of that opening. */
  start?: number;
  opened?: number;
}

export type ViewOptionsOfRequest = Omit<ViewOptions, 'banned'>;

/** A request as it is sent: `page` names the page, `number` grows with each request, `visitor` are headers for shared GPUs. */
export interface SentRequest extends BranchRequest { page: string; number: number; visitor?: Record<string, string> }

/** How far the model is loaded. */
export interface LoadingStatus { state: string; sentence: string; fraction?: number | null }

/** A response: what is new of a request. */
export interface News {
  state?: 'thinking' | 'settled' | 'waiting' | 'error' | 'full' | 'empty';
  view?: any;
  /** Tokens that are read, of how many. */
  reading?: [number, number] | null;
  note?: string | null;
  sentence?: string;
  /** A word by which the page recognises an error, and what its remedy needs. */
  reason?: string;
  details?: Record<string, any>;
  loading?: LoadingStatus;
  /** Views after accepting tokens, by their ids. */
  ahead?: Record<string, View>;
  tokens_ahead?: number;
  seen?: number;
  over?: boolean;
  /** Seconds until a refused call may be repeated. */
  retry_after?: number;
  /** Seconds that a busy model server wants to be left alone: until then a `full` request is not repeated. */
  again_after?: number;
  superseded?: boolean;
  unknown?: boolean;
}

/** A response while the model is still loading. */
export type WaitingNews = News & {loading: LoadingStatus};

/**
 * The odds of a guessed next word. `texts` are the ways in which it may continue the text; `words` is whether the
 * probability counts that the word ends there.
 */
export interface GuessOdds { probability: number; error: number; texts: string[]; words: boolean }

/** All guesses of a document: their surprise together, in bits, and their number. */
export interface GuessScore { bits: number; guesses: number }

/** An answer to a guess. It is `unknown` if the server has not read the text, or has read another one since. */
export type GuessAnswer = Partial<GuessOdds> & {unknown?: boolean, sentence?: string};

/** The functions of the server that a page may call. */
export interface Server {
  ask(request: SentRequest): Promise<News>;
  more(request: {page: string, number: number, seen: number | undefined}): Promise<News>;
  stop(request: {page: string, number: number}): Promise<void>;
  tree(request: {page: string}): Promise<object | null>;
  guess(request: SentRequest & {guess: string}): Promise<GuessAnswer>;
  fit(request: SentRequest): Promise<{fits?: AlternativeFit[], unknown?: boolean, sentence?: string}>;
  shorten(request: {page: string, source: string, ratio: number}): Promise<Record<string, unknown>>;
  shortening_progress(request: {page: string}): Promise<Record<string, unknown>>;
  stop_shortening(request: {page: string}): Promise<void>;
}

/** The arguments of a component's script, as `interface/http/assets.py` passes them. */
export interface ComponentArguments {
  element: HTMLElement;
  props: any;
  watch: (name: string, listener: () => void) => void;
  server: Server;
}

// Rows: a view as it is drawn.

/** The settings that rows are drawn with. `oneWord` shows the first word of each row as one piece. */
export interface RowSettings extends Partial<ViewOptionsOfRequest> {
  order?: string;
  /** The texts of all banned tokens, where the page knows them. */
  banned_texts?: string[];
  oneWord?: boolean;
}

/** All settings of a drawn view: what was asked for, overridden by the sliders. */
export interface DrawnSettings extends RowSettings { until: string; depth: number; k: number; banned?: any }

/** A piece with its ids and odds. `unsaid` counts tokens before it that hold no whole character. */
export interface RowPiece extends Piece {
  ids: number[];
  odds: Odds;
  upTo: Odds;
  unsaid: number;
  /** Whether it belongs to the word that the branches go towards. */
  isWord?: boolean;
  /** Whether the person has put it in. */
  isEdited?: boolean;
  /** Whether what follows it is still being computed. */
  isChanging?: boolean;
}

/** A drawn branch. */
export interface Row {
  branch: Branch;
  nodes?: string[];
  ids: number[];
  figures: Odds[];
  pieces: RowPiece[];
  ended: boolean;
  healed: boolean;
  path: Odds;
  rawPath: number;
  /** The odds of the end token, if the row ends. */
  end: Odds | null;
  /** Tokens after the last piece that hold no whole character. */
  unsaid: number;
  raw: boolean;
  pinned: boolean;
  /** Whether it is drawn beside the view's own rows. */
  extra: boolean;
  /** Whether it ends because it would repeat itself. */
  repeats: boolean;
  /** Whether it has not reached the end that is asked for. */
  open: boolean;
  /** If it is open and has as many tokens as it may have: their number; else 0. */
  limit: number;
  /** Whether the search of “best first” has ended before it had the length that is asked for. */
  unfollowed: boolean;
  /** The length of the shortest prefix that no other row has, and its odds. */
  apart: number;
  share: Odds;
  rawShare: number;
  /** The next word that the share is the chance of, while shares are those of words. */
  next_word?: BranchWord;
  /** Whether top-p or temperature 0 excludes it. */
  cut: boolean;
  /** The setting that excludes rows of this view, in words, as “top-p 0.5”; empty if none does. */
  excludes: string;
}

/** A row of a revision of the text. `changing`: a person has changed it, and what follows the change is being computed. */
export interface DrawnRow extends Row { revision: number; changing?: boolean }

/**
 * A beginning that no row has, with its odds. `raw` is its log-probability at temperature 1, and decides the order of those with
 * equal odds. `otherwise`: rows have it, and the odds are those of other ways on.
 * `joined`: a row begins with the same word after a space.
 */
export interface DrawnOther extends OtherBeginning { odds: Odds; raw: number; otherwise?: boolean; joined?: boolean }

/** A drawn view: rows in order, what they hold together, and what else there is. */
export interface DrawnView<R extends Row = Row> {
  rows: R[];
  others: DrawnOther[];
  /** The number of the view's own rows. */
  count: number;
  coverage: Odds;
  rest: Odds;
  wanted: Partial<DrawnSettings>;
  /** Likely banned tokens, likeliest first; `odds` is null where temperature or top-p change what the model gives. */
  without: {text: string, odds: Odds | null}[];
  given: string;
  /** Whether the first token sets every row apart. */
  firsts: boolean;
  word?: WordOdds;
  /** Whether the rows may still grow. */
  growing?: boolean;
  /** How much a share may be wrong at most, up or down, where shares are those of words; else null. */
  wordError: number | null;
}

/** A click: the text it inserts and the ids that the text stands for. */
export interface Choice {
  revision: number;
  /** The index of the row; null for a beginning that no row has. */
  branch: number | null;
  token: number;
  text: string | null;
  ids: number[];
  healed: boolean;
  logprobs: number[];
  rest: BranchRemainder | null;
  /** The spans of the text that the person has written into the row. */
  written: Span[];
  /** The log-probability of each stretch of the text between these spans. */
  chosenLogprobs: number[];
}

/** How a choice was made: by a key, or by which kind of pointer. */
export interface ChoiceSource { byKeyboard: boolean; pointer: string | null }

/** The detail of an `accept` event. A listener that cancels the event may say why in `because`. */
export interface AcceptDetail extends Choice, ChoiceSource {
  because?: string;
  /** The instruction of the column that was clicked; missing elsewhere. */
  instruction?: string;
}

/** The methods of the branch view on its element, for other parts of the page. */
export interface BranchViewHandle {
  rows(): DrawnRow[];
  drawn(): DrawnView<DrawnRow>;
  /** The revision of the text whose branches are wanted: older rows are refused. */
  expected(): number;
  state(): string;
  isStale(): boolean;
  /** Call a function, and draw the changes of all events that it dispatches once, after it. */
  drawOnce(run: () => void): void;
  /** Name the rows anew, after `data-same` of some has changed. */
  nameRows(): void;
  /** Whether rows are computed and none of the present text has come, be they hidden or not. */
  awaitsRows(): boolean;
  /** Whether the rows are hidden until the next word is guessed. Nothing of them may be shown elsewhere then. */
  isVeiled(): boolean;
  /** What Tab inserts into the present text as far as a screen reader was told; empty if it was not. */
  announcedTab(): string;
  /** Give the focus to the branches; false if there are none. */
  focus(): boolean;
  /** The index of the piece that completes the first word of a row; -1 if there is none. */
  nextWord(branch: number): number;
  choiceOf(branch: number, token: number): Choice | null;
  choose(branch: number, token: number, source?: Partial<ChoiceSource>): boolean;
  /** Dispatch a choice. Returns whether it was accepted; a refusal is shown. */
  accept(choice: Choice | null, source: ChoiceSource): boolean;
  /** Say which button is pointed at: its odds are shown below the rows. */
  point(target: {branch: number, piece: number} | null): void;
  /** How far the rows are computed, as the `progress` event says when it changes; empty if there is nothing to say. */
  progress(): string;
  /** The label of a button that bans what is pointed at; empty if that cannot be banned. */
  banLabel(): string;
  /** Ban what is pointed at, and then point at nothing. */
  banPointed(): void;
  choosePointed(): boolean;
  /** Accept a whole row, or wait until it is complete; false if there is no such row. */
  chooseWhole(branch: number): boolean;
  /** Accept the row that is waited for, if it is complete. */
  acceptAwaited(): void;
  /** Wait for no row any more; false if none was waited for. */
  giveUp(): boolean;
}

export type BranchViewElement = HTMLElement & {branchView: BranchViewHandle};

/** What a `show` event of the branch view brings. */
export interface ShowDetail {
  revision?: number;
  state?: string;
  view?: View | null;
  note?: string | null;
  reading?: [number, number] | null;
  pinned?: BranchRemainder | null;
  /** The text before the branches, or its end. */
  before?: string;
  /** Whether the view is the stored example. */
  stored?: boolean;
  /** The changes of rows that the view has once it is complete. */
  edits?: RowEdit[];
}

// Text, history, documents.

/** A stretch of a text, as [start, end]. */
export type Span = [start: number, end: number];

/** A step beside the text, such as a ban, with the number of the text's step before it; 0 before the first. */
export interface SideStep { at: number; step: any }

/** All steps beside the text of a document. */
export interface SideStepsState { done: SideStep[]; undone: SideStep[] }

/** One replaced stretch of a text. */
export interface Change { start: number; removed: string; inserted: string }

/** A change of the list of chosen spans: from this index, these spans are replaced by those. */
export interface SpansPatch { from: number; before: Span[]; after: Span[] }

/** Who wrote a character: see `authorship.js`. */
export type Author = 'typed' | 'pasted' | 'chosen' | 'example' | 'earlier';

/**
 * A run of characters of one author. `step` is the number of the step that brought them, in the order of time. Chosen
 * characters have the model's name, the log-probability of the accepted piece, and the beginning of the instruction that its
 * rows followed, where these are known.
 */
export interface AuthorRun { length: number; author: Author; step?: number; model?: string | null; logprob?: number | null; instruction?: string }

/** A stretch of a text with its author. Each figure is null where it is not known, or does not apply. */
export interface AuthoredPiece {
  start: number;
  end: number;
  text: string;
  author: Author;
  /** 1 for what was written first. Steps of which nothing is left in the text are not counted. */
  order: number | null;
  model: string | null;
  /** The probability of the whole chosen piece after the text before it, and after the instruction if there is one. */
  probability: number | null;
  /** What the model was told when the piece was chosen, or the beginning of it; missing if nothing. */
  instruction?: string;
}

/** A stretch of a replayed text; `note` says who wrote it. */
export interface ReplayPiece { text: string; author: Author; note: string }

/** One step of a replay: pieces replace so many characters at `start`. `wait`: milliseconds before it. */
export interface ReplayStep { start: number; removed: number; pieces: ReplayPiece[]; did: string; wait: number }

/** The making of a text: what stood there first, and every step since. */
export interface Replay { first: ReplayPiece[]; steps: ReplayStep[] }

/** A message of a conversation with the spans that were chosen. */
export interface MarkedMessage extends Message { spans: Span[] }

/** A conversation before the message in progress, and whose turn it is. */
export interface ConversationState { messages: MarkedMessage[]; role: string }

/** What precedes the text, before and after a step that passes the turn. */
export interface Turn { before?: ConversationState; after?: ConversationState }

/** A step before it is added to the history: a change, the selections around it, its kind and its time. */
export interface NewStep extends Change {
  before: Span;
  after: Span;
  kind: string;
  time: number;
  turn?: Turn;
  ids?: number[] | null;
  healed?: boolean;
  logprobs?: number[] | null;
  /** The name of the model that an accepted piece comes from. */
  model?: string | null;
  /** The beginning of the instruction that the rows of an accepted piece followed; missing if there was none. */
  instruction?: string;
  /**
   * The spans of an accepted text that the person had written into the row, and of a space that was inserted behind it and the
   * caret; missing if there are none.
   */
  written?: Span[];
  /** The log-probability of each chosen stretch of such a text, in order; missing if nothing was written into it. */
  chosenLogprobs?: number[];
}

/**
 * A step of the history, with what it did to the chosen spans. Steps of older versions have no number, which grows with
 * each step of a document. A step that goes back to an earlier text has the authors of that text, and its accepted
 * pieces.
 */
export interface HistoryStep extends NewStep {
  marks: SpansPatch;
  number?: number;
  authors?: AuthorRun[];
  accepted?: AcceptedSpan[];
}

/** A text with its chosen spans, and the conversation before it. */
export interface TextState { text: string; spans: Span[]; earlier?: ConversationState }

/** A text that was undone and then replaced by another: the change that restores it from the text after step `at`. */
export interface AbandonedText extends Change {
  at: number;
  caret: Span;
  time: number;
  marks: Span[];
  context: string;
  turn?: Turn;
  /** The authors of the inserted text. */
  authors?: AuthorRun[];
  /** The accepted pieces of the whole text that end in what was inserted, where there are any. */
  accepted?: AcceptedSpan[];
}

/** The steps of a document, and the authors of the text before the first step, where they are known. */
export interface HistoryState { steps: HistoryStep[]; position: number; authors?: AuthorRun[] }

/** An entry of the history's list. */
export interface Moment {
  kind: string;
  time: number;
  /** What precedes it, as context. */
  before: string;
  text: string;
  /** The spans of that text that the person has written; missing if there are none. */
  written?: Span[];
  /** The number of steps after which the text stood like this. */
  at?: number;
  /** The index among the abandoned texts. */
  index?: number;
  /** Whether an accepted piece no longer stands in the text. */
  isGone?: boolean;
  /** Whether an abandoned text was gone back to, and a part of it stands in the text. */
  isBack?: boolean;
  earlier?: ConversationState;
}

/** The state of a text box, as it is stored. */
export interface DraftState extends TextState {
  caret: number;
  history: HistoryState;
  left: AbandonedText[];
  /** Documents that were stored by older versions have no such steps. */
  side?: SideStepsState;
  /** Documents that were stored by older versions have no such list. */
  accepted?: AcceptedSpan[];
}

/** The writer's settings of branches, as they are stored. `view` names how branches are shown; `shape` and `session` belong to the tree, `columns` to the comparison. */
export interface StoredSettings extends Partial<ViewOptionsOfRequest> { order?: string; banned?: BannedToken[]; view?: string; shape?: string; session?: boolean; guess_first?: boolean; columns?: unknown }

/** The fields of a document without its identity. */
export interface DocumentFields extends DraftState {
  settings: StoredSettings | null;
  model: string | null;
  instruction: string;
  instructed: boolean;
  /** The views that were shown, as `SeenViews` stores them. Documents that were stored by older versions have none. */
  seen?: StoredSeenView[];
  name?: string;
  /** Whether the history is to be played when the document is opened from a file. */
  play?: boolean;
}

/** A document as the browser stores it. */
export interface DocumentRecord extends DocumentFields {
  id: string;
  name: string;
  created: number;
  edited: number;
  version: number;
}

/** An entry of the list of documents; `open` is the one of this tab. */
export interface DocumentCard {
  id: string;
  version: number;
  name: string;
  edited: number;
  title: string;
  words: number;
  open?: boolean;
}

/** The content of a link. */
export interface DocumentLink {
  text: string;
  /** The name that the document was given. */
  name?: string;
  settings: StoredSettings | null;
  seed: number | null;
  instruction: string | null;
  model: string | null;
  /** The chosen spans and the accepted pieces, unchecked. */
  spans?: unknown;
  accepted?: unknown;
  /** The changes of the rows after the text, unchecked. */
  edits?: unknown;
  /** The history, unchecked, and whether it is to be played. */
  history?: unknown;
  play?: boolean;
}

// Trees: branches and the session as a drawing.

/**
 * What a node of a drawn tree is: a piece of the text (`typed` or `chosen`), a piece of an abandoned text (`left`), a beginning
 * of a branch that was shown and not accepted (`seen`), a piece of a present branch (`ahead`), an ending, or everything else.
 */
export type TreeState = 'typed' | 'chosen' | 'left' | 'seen' | 'ahead' | 'end' | 'rest';

/** A node of a drawn tree. Its key differs from all others of the tree. */
export interface TreeNode {
  key: string;
  /** The characters that it adds to its parent's text. */
  text: string;
  state: TreeState;
  /** Its odds after its parent; null where they are not known. */
  odds: Odds | null;
  /** What stands below its label in place of its odds. */
  note?: string;
  children: TreeNode[];
  /** The odds that none of the children has; null where there are no odds to tell. */
  rest: number | null;
  /** Whether the text has stood up to here, so that the odds of the children begin anew at 1. */
  reached?: boolean;
  /** Whether it is the end of the present text. */
  here?: boolean;
  /** The branch, and its index, that a click accepts up to one of its pieces. */
  piece?: {row: DrawnRow, branch: number, piece: number};
  /** Whether the branch belongs to an older text. */
  inert?: boolean;
  /** The text before the caret that a click goes to. */
  goal?: string;
}

/** A beginning of a view that was shown, with its odds. */
export interface SeenBeginning { text: string; odds: Odds }

/** A view that was shown: the text before it, the beginnings of its rows, and the odds of texts that its rows begin with. */
export interface SeenView { text: string; beginnings: SeenBeginning[]; odds: Map<string, Odds> }

/** Stored odds of a text; without the third part if they are exact. */
export type StoredOdds = [text: string, p: number, signs?: Omit<Odds, 'p'>];

/** A stored view: its text begins with `same` characters of the text of the view before it in the list. */
export interface StoredSeenView { same: number; text: string; beginnings: StoredOdds[]; odds: StoredOdds[] }

/**
 * A text that the document has had before its caret. `base` and `p`: an accepted piece was added to that text, with these odds.
 * `taken`: it stood on the way to the present text, so it is neither undone nor abandoned.
 */
export interface PastText { text: string; base?: string; p?: number | null; taken?: boolean }

/** A node with its position: `x` is its left edge, `right` that of its column, `y` its middle. `flow` and `out`: a river's width where it begins and ends. */
export interface LaidNode {
  node: TreeNode;
  parent: LaidNode | null;
  depth: number;
  x: number;
  right: number;
  y: number;
  label: string;
  figure: string;
  /** The width of the label, or of the odds below it where they are wider. */
  width: number;
  height: number;
  flow: number;
  out: number;
}

/** A link between a node and a child: where it leaves and arrives, and a river's width at both ends. */
export interface LaidLink { from: LaidNode; to: LaidNode; x0: number; y0: number; x1: number; y1: number; w0: number; w1: number }

export interface TreeLayout { width: number; height: number; river: boolean; nodes: LaidNode[]; links: LaidLink[] }

/** The colours of a drawing: `soft` of secondary text, `faint` of thin lines, `line` of borders. */
export interface DrawingColours { paper: string; ink: string; soft: string; faint: string; line: string; accent: string; good: string }

// Highlights tab.

export interface Alternative { id: number; text: string | null; probability: number; end: boolean }

/** Whether an alternative fits in place of a word, and the odds of the next words after it. */
export interface AlternativeFit {
  id: number;
  sentence: string;
  drops_in: boolean | null;
  logprob: number | null;
  own: number | null;
  following: string;
}

/** A character or word of the analysed text with its figures, in nats; null where nothing precedes it. */
export interface HighlightEntry {
  start: number;
  end: number;
  token: string;
  ids: number[];
  place: number;
  word: Span;
  loss: number | null;
  /** The loss less that of the likeliest tokens; null where it is unknown or infinite. */
  excess: number | null;
  relative: number | null;
  rank: number | null;
  entropy: number | null;
  seen_from: number;
  alternatives: Alternative[];
}

export interface HighlightsView { entries: HighlightEntry[]; marks: number[]; sentence?: string | null }

/**
 * A word of the analysed text; `entry` is the one that is shown, `rank` its place among the highlights, `before` the number of
 * words that the model has read before it, signs not counted; infinite after an instruction.
 */
export interface MarkedWord {
  from: number;
  entries: HighlightEntry[];
  /** The entry that is shown. */
  entry: HighlightEntry;
  rank: number;
  text: string;
  /** The part of the text before `entry`; empty if that is the first one. */
  begun: string;
  /** The number of words that the model has read before the word. */
  before: number;
  /** The word before, and `begun`. */
  given: string;
  /** Whether `entry` is among the first tokens of a text without an instruction. */
  early: boolean;
}

// Internals tab.

/** A token by itself: its text, or its bytes where it is part of a character. */
export interface SpelledToken { text: string; bytes: string | null; ended: boolean }

/** A token of the analysed text; the last one of a view has no id: it is the one to come. */
export interface InternalsToken {
  id: number | null;
  text: string;
  /** The index of its message; null if the chat template or the tokenizer added it. */
  message: number | null;
  rank: number;
  logprob: number | null;
  alternatives: [id: number, logprob: number | null][];
}

export interface InternalsView {
  tokens: InternalsToken[];
  nodes: string[];
  spelled: Record<number, SpelledToken>;
  /** In nats. */
  entropies: number[];
  cost: ViewCost;
}

/** A row of the table of a token: an alternative with its raw and its processed odds. */
export interface OddsRow extends SpelledToken { id: number; came: boolean; rank: number; raw: Odds; processed: Odds }

/** The sliders of the Internals tab. */
export interface Processing { temperature: number; topP: number }

// The Lab.

/** One depth of the cache experiment; figures of work are sums from the prompt on. */
export interface CacheRow {
  depth: number;
  rows: number;
  equal: boolean;
  /** Null if a logit is no number. */
  difference: number | null;
  relative_difference: number | null;
  /** What the relative difference is of. */
  compared: 'logit' | 'log-probability';
  bound: number;
  other_tokens: number;
  cached_seconds: number;
  cached_cpu_seconds: number;
  cached_passes: number;
  cached_tokens: number;
  cached_joules: number;
  uncached_seconds: number;
  uncached_cpu_seconds: number;
  uncached_passes: number;
  uncached_tokens: number;
  uncached_joules: number;
  cache_bytes: number;
  /** The shortest and the longest time of all runs; `cached_seconds` and `uncached_seconds` are medians. */
  cached_seconds_least: number;
  cached_seconds_most: number;
  uncached_seconds_least: number;
  uncached_seconds_most: number;
  runs: number;
}

/** The cache experiment's result, or the part of it that is known while it runs. */
export interface CacheView {
  prompt_tokens: number;
  equal: boolean;
  steps: CacheRow[];
  branches: string[];
  /** The number of depths that each run has computed so far. */
  runs: number[];
  precisions: {depth: number, relative_difference: number | null, other_tokens: number}[];
  energy_source: string;
}

/** A text that one of the methods wrote, in the Lab's decoding page. Log-probabilities are the model's own. */
export interface DecodedText {
  method: DecodingMethod;
  number: number;
  token_ids: number[];
  texts: string[];
  logprobs: number[];
  ended: boolean;
  total: number;
  /** Null before the first token. */
  average: number | null;
  /** The part of its three-token sequences that occurred before in it, 0 to 1. */
  repetition: number;
}
export type DecodingMethod = 'greedy' | 'sample' | 'beam';

/** A path that the beam search considered: its last token, and the index of the path before it. */
export interface BeamTreeNode {
  parent: number | null;
  token_id: number;
  text: string;
  logprob: number;
  ended: boolean;
  fate: string;
  reason: string;
}

/** The odds of a token after the prompt: the model's, and those with the options of the samples. */
export interface NextTokenOdds { id: number; text: string; raw: number; processed: number }

/** The odds of the likeliest next tokens, and how often each was drawn. */
export interface OddsView {
  odds: NextTokenOdds[];
  /** The probability of all other tokens: the model's, and with the options. */
  others: [raw: number, processed: number];
  draws: {number: number, counts: number[]} | null;
}

/** The decoding experiment's result, or the part of it that is known while it runs. */
export interface DecodingView extends OddsView {
  texts: DecodedText[];
  tree: BeamTreeNode[];
}

/**
 * A node of the tree of all decoded texts: the names of the texts that pass through it, their methods, and why the beam search
 * dropped it, if it did and no beam passes.
 */
export interface DecodingNode extends TreeNode {
  texts: Set<string>;
  methods: Set<DecodingMethod>;
  dropped: string;
  children: DecodingNode[];
}

/** A token in the cache, in the Lab's mask page: its slot, the pass that computed it, and the slots that it attends to. */
export interface RecordedNode {
  slot: number;
  token_id: number;
  text: string;
  /** The slot of the token before it; null for the first token. */
  parent: number | null;
  position: number;
  /** The number of the pass that computed it, from 1. */
  number: number;
  attends: number[];
}

/** The tokens of a lookahead in the cache, and the last tokens of the branches, which have no slot. */
export interface AttentionRecord {
  nodes: RecordedNode[];
  leaves: {token_id: number, text: string, parent: number | null}[];
  prompt_tokens: number;
  passes: number;
}

/** A token that drafters proposed, in the Lab's speculation page. */
export interface DraftedToken {
  token_id: number;
  text: string;
  /** The index of the node before it in the draft; null if it follows the text. */
  parent: number | null;
  depth: number;
  drafters: string[];
  /** The probability, as estimated before the pass, that it and all before it are accepted. */
  odds: number;
  accepted: boolean;
}

/** A pass that verified a draft, and the token that the model itself added. */
export interface VerifiedPass {
  number: number;
  before: number;
  nodes: DraftedToken[];
  added: {token_id: number, text: string, kind: 'correction' | 'bonus' | 'alone'};
}

/** The record of speculative decoding, or the part of it that is known while it runs. */
export interface SpeculationView {
  drafters: string[];
  draft_model: string | null;
  prompt_tokens: number;
  passes: VerifiedPass[];
  token_ids: number[];
  texts: string[];
  ended: boolean;
  plain_token_ids: number[];
  plain_texts: string[];
  plain_passes: number;
  /** Null until both texts are complete. */
  equal: boolean | null;
}

/** First tokens drawn by rejection sampling: in how many draws tokens were drafted, and in how many one was accepted. */
export interface RejectionDrawsView extends OddsView { drafted: number; accepted: number }

declare global {
  /** The characters of the keys that were pressed while the page loaded; see early_keys.js. */
  var earlyKeys: () => string;
}
