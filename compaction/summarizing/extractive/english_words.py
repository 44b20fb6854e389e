"""How much an English word says, known beforehand: nothing, little, a middling amount, or (any other word) a lot.

A stretch of one conversation is too short to learn which words are common: seen once among thirty messages,
"awesome" looks as rare as "Lisbon". So the everyday vocabulary is written down here, once. It is general knowledge of
English, not fitted to any conversation; words of other languages stand in no band and are judged by how often and how
widely the source itself uses them.
"""

from __future__ import annotations


def _band(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Grammar and interjections: they carry no fact by themselves, and are the first words a telegram drops.
# Negations stay out of this list on purpose: "does not work" must not become "work".
FUNCTION_WORDS = _band(
    """
    a about after again ah all also although am an and any anyone anything are aren around as at aw away b be
    because been before being between both btw but by c can could couldn d did didn do does doesn doing don
    done down during each eg either else etc even ever every everyone everything f for from further g gonna
    gotta h had hadn haha has hasn have haven having he hello her here hers herself hey hi him himself his hmm
    how however i ie if in into is isn it its itself j just k l ll lol m may me might mine more most must my
    myself n now o of off oh ok okay on once one ones only onto or other others our ours ourselves out over
    own p per perhaps please q r rather re right s same sees shall she should shouldn so some someone
    something still such t than that thats the their theirs them themselves then there these they this those
    though through thus to together too toward towards u uh um under until up upon us v ve very via w wanna
    was wasn we were weren what whatever when where whether which while who whoever whole whom whose why will
    with within would wouldn wow x y yeah yep yes yet you your yours yourself yup z
    """
)


# Said in almost every conversation whatever it is about: pleasantries, feelings, talk about talking, and the
# verbs that only carry another word ("make a plan", "get well", "have a look").
SMALL_TALK = _band(
    """
    able absolutely actually agree almost already always amazing another anytime anyway appreciate ask awesome
    back bad basically beautiful believe best better big bit bless blessed bye came care certainly cheer
    cheers come comes coming completely congrats congratulations cool couple crazy cute definitely deserve
    easy encourage encouragement encouraging enjoy enough especially exactly excited exciting experience
    fantastic far feel feeling felt few finally find fine forget forward fun gave get gets getting give given
    gives glad go goes going gone good gorgeous got gotten grateful great guess guys happen happy hard hear
    heard help helpful honestly hope hopefully idea imagine important impressive incredible inspiration
    inspire inspired inspiring interested interesting journey joy keep keeps kept kind kinda know let lets
    life like literally little look looking lot lots love loved lovely luck lucky made make makes making many
    matter maybe mean meaningful means meant memory mind moment motivate motivated motivation much need never
    nice nope passion passionate peace perfect positive possible powerful pretty probably proud put quite
    ready real realize really remember remind reminder sad said saw say says see seem seems seen share simply
    soon sorry sound sounds special stay story strong stuff super support supportive sure surely sweet take
    taken takes talk tell thank thankful thanks thing things think thought thrilled told took totally tough
    tried true truly try trying turn understand update use used uses using usually wait want wants way ways
    welcome well went wild wish wonder wonderful word worry worth wrong young
    """
)


# The frame of every account: when, who in general, and the plainest doings. "When" is half of what is asked
# later.
PLAIN = _band(
    """
    ago alone along bring brought call catch chance change check child close day days deal different early end
    evening face family feedback first focus follow friend friends full future girl group grow growth guy half
    hand hang head high home hour hours house job kid kids large last late lately later least leave left less
    level line list listen live living long lose man mark minute miss money month months morning move name new
    next night no not nothing number offer often old open opportunity order part party past path pay people
    person photo pick picture place plan plans play point problem push question quick reach read reason recent
    recently relax rest result run running safe school second set show side simple since sit size small
    sometimes start started step stop stress student sun teach team ten test three time times today together
    tomorrow tonight top total touch town two type usual view visit watch week weekend weeks without woman
    women work working world year years yesterday
    """
)


# Words that name something, but something met every day.
EVERYDAY = _band(
    """
    accept access accomplish achieve achieved act action activities activity add added adding advice afraid
    afternoon age air allow amount animal animals answer anymore apart apartment apparently appear apply area
    arrive art aspect attend attention aware baby ball bath beach bed began begin beginning behind belong
    benefit birthday black block blue board boat body book books bought box boy bread break breakfast breath
    bright broke brother build building built bunch business busy buy cake calm camera car card careful carry
    case cat cause celebrate center certain challenge challenges challenging character childhood children
    choice choose city class clean clear clearly clothes coffee cold collect collection color colors comfort
    comfortable common community company compare complete computer concern conditions consider consistent
    contact contain continue control conversation cook cooking corner correct cost country course cover create
    created creating creative creativity culture cup curious current currently cut dad daily damage dance dark
    data date daughter dead dear decide decided decision dedication deep delicious depend describe design
    detail details develop difficult dinner direct direction discover discuss distance doctor dog dogs door
    draw dream dreams dress drink drive drop dry earth eat eating edge effect effort efforts eight email
    emotion emotional emotions energy ensure enter entire environment event events example except excuse
    exercise expect expensive explain explore exploring express extra eye eyes fact fail fair fall families
    famous fan fast father favorite favourite fear feet field fight figure fill film final finding finish
    finished fire fit five fix flow flower flowers fly food foot force form four free freedom friendly
    friendship fulfilling game games garden general gift girls goal goals grab green grew ground growing guide
    hair hall hands happening hat hate health healthy heart heat heavy held hidden hike hiking hit hobby hold
    hole holiday hot hotel hug huge human hurt husband ice impact improve include included includes increase
    indeed information inside involved issue issues item items join joined joint key kitchen knew lady land
    language laugh lead learned learning leaves leg lesson lessons letter lie light limit listening loud low
    lunch main manage manner market match material meal medium meeting member memories men mental mention
    mentioned message met middle mile miles million mission mix model modern mom mother mountain mountains
    mouth movie movies moving music natural nature near nearby necessary neighborhood nervous normal north
    nose note notice noticed offers office older online opened opinion option options orange original outdoor
    outdoors outside owner pack page paid paint painted painting paper parents park particular partner pass
    passed passing patience peaceful perform period personal pet pets phone piece pieces planned planning
    plant plants plate played playing plenty popular position post practice prefer prepare present president
    press price private process product program project projects promise proper protect prove provide public
    pull purpose quality rain raise ran range reading reasons recipe recommendation red refreshing regular
    relationship relationships relief remain repeat reply report require research resource resources respect
    response restaurant results return review reward rich ride ring rise risk river road role room round route
    row rule sale save saving scene science sea search season seat section seeing send sense sent separate
    serious serve service session seven several shape ship shirt shoes shop short shot shoulder shout sign
    similar single sister situation six skill skills sky sleep slow smile social society sold solid solution
    solve son song songs sort south space speak specific spending spent spirit spot spread spring stand
    standard star state stayed steps stone stood store stories strange street strength strengths structure
    struggle struggles students study style subject success successful suddenly suggest suggestion suggestions
    summer sunset supplies supposed surprise surprised system table tall task taste teacher techniques
    technology term third thousand throw till tip tips tired tone track tradition traditional train training
    travel traveling treat tree trees trip trips trouble truth unless upset valuable value values variety
    various video voice volunteer volunteering walk walks wall warm washing waste water wave weather website
    wedding weekly weight west wet white wide wife wind window winter wise won wood wore write writing written
    wrote yard yellow
    """
)


# Common verbs, qualities and abstractions: they colour a statement more than they make it.
COMMON = _band(
    """
    absorb abstract abundant academic accident according accordingly accurate achievement acknowledge acquire
    active actual adapt additional address adjust admire admit adopt adult advance advanced advantage affect
    affordable aim alert alike alive allowed alternative ambition ambitious analysis announce annual anxious
    appeal appearance appointment approach appropriate approximately argue arrange arrangement arrival artist
    artistic aside aspire assign assist associate assume assure atmosphere attach attached attempt attitude
    attract attractive audience authentic author authority average avoid awareness awful awkward balance
    balanced barely barrier based basic battle bear beauty behavior belief beneficial besides bet beyond
    bitter blame blank blend blow bonus boost bore boring borrow bother bottle bottom bound brave breathe
    breathtaking breeze brilliant broad bump burden burn calming campaign capable capacity capture career
    carve casual celebration central challenged champion chaos charge charm charming chat cheap chill circle
    circumstance claim climb closely collaborate combination combine comfy comment commit commitment
    communicate communication compared compassion compassionate compete competition complex complicated
    concentrate concept concerning conclusion confidence confident confirm confuse confused confusing
    connecting conscious consequence considerable considering constant constantly construct contribute
    contribution convenient convince cope core counter courage cozy craft crash creation creator crew critical
    crowd crucial cry curiosity custom customer cycle daring deadline decade decent declare decline dedicate
    dedicated defend define definition degree delay delight delightful deliver demand demonstrate deny
    department desire desperate despite destination destroy detailed determination determine determined device
    devote dig dirty disappear disappointed disappointing disappointment discipline discovery display distinct
    dive diverse diversity divide document domestic doubt downtown draft drag dramatic drawing drawn dread
    driven driving drove due dynamic eager earn ease easier easily economic educate education effective
    efficient elegant element embrace emerge emphasize employ empower empowering enable enhance enhancing
    enjoyable enjoyment enormous entertaining enthusiasm enthusiastic entirely equal equipment escape
    essential establish estimate evaluate eventually evidence evolve exact examine excellent exception
    exchange excitement exhausted exhausting exist existing expand expectation expert explanation expose
    expression extend extent external extreme extremely facility factor failure faith familiar fantasy
    fascinate fascinating fascination fashion fault fave favorites fellow fierce finely finger fitness flat
    flexibility flexible float folks following fond formal former fort fortunate fortunately fortune
    foundation frame frequent fresh frustrated frustrating frustration fuel fulfill fulfilled fulfillment
    function fund fundamental funny furniture furthermore gain gather gear generate generous gentle genuine
    genuinely giant global glow grace gradually grand grasp gratitude greatly grip guarantee guest guidance
    habit handle handy hardly harm harmony heading heal healing heartfelt heartwarming heavily hence heritage
    hero hesitate highlight highly hint historical hobbies honest honor horrible host hungry hurry ideal
    identify identity ignore illness imagination immediate immediately immense impress impression improvement
    inclined including incorporate independent individual industry inevitable influence inform initial inner
    innocent innovation innovative insight insights inspect instance instant instead insurance integrate
    intend intense intention interact interaction interest internal international interview introduce
    introduction invest investment invitation invite isolate joke journal judge jump justice keen kindness
    knowledge labor lack largely laughter launch layer leader leadership lean leap legacy legal lend liberal
    lift likely limited link liquid load loan local locate location logical lonely loose loss lost loyal
    loyalty magic magical maintain major majority managed management massive master matching mature maximum
    meanwhile measure medical mentally mentor mere mess messy method mindful mindset minor miracle mistake
    mixed mixture monitor monthly mood moral moreover motion motivating mount multiple musical mutual
    mysterious mystery namely narrow nation national native neat negative negotiate neighbor neither network
    neutral nevertheless nicely none nonetheless normally notable notion numerous obligation observe obstacle
    obstacles obtain obvious obviously occasion occasional occasionally occur odd operate operation opponent
    oppose opposite ordinary organization organize organized origin otherwise ought outcome outlet overall
    overcome overcoming overnight overwhelm overwhelmed overwhelming owe ownership pace pain panel panic
    patient payment peak perception perfectly performance permanent permission persistence personality
    perspective phase philosophy physical physically pitch pleasant pleased pleasure plot plus poetry polish
    polite political positively positivity potential practical praise precious precise prepared presence
    preserve pressure prevent previous previously pride primary prime principle priority privilege prize
    procedure proceed produce production professional profit profound progress prominent promote promotion
    prompt properly property proposal propose prospect protection provided provider publish purchase pure
    pursue pursuing qualify quarter quest quiet quit quote rapid rare rarely rate raw react reaction readily
    realistic reality realization recall receive recharge recognition recognize recommend record recover
    recovery reduce refer reflect reflection refresh refuse regard regarding regardless region regret
    regularly reject relate related relation relative relatively relaxed release relevant reliable reliance
    rely remarkable remarkably remote remove rent repair replace represent reputation request rescue reserve
    resist resolve respond responsibility responsible restore retain retire reveal revolution rewarding rhythm
    roll romantic rough roughly routine ruin rush sacrifice sadly safety sample satisfaction satisfied satisfy
    satisfying scale scared scary schedule scope score scratch secret secretly secure security seek select
    selection self selfish senior sensation sensible sensitive sequence serene serenity series seriously
    setting settle setup severe shade shake shallow shared sharp shift shine shock shut sick significant
    significantly silence silent silly similarly sincere skilled slightly slip slowly smart smell smooth soft
    softly solo somehow somewhat soothing sophisticated soul soulful source spare spark spectacular speech
    speed spend spiritual split spoil spontaneous stable staff stage stare static status steady steal stick
    stimulate stir straight strategy stream strengthen stressed stressful stretch strict strike stroke
    stronger strongly stuck stunning stupid substance substantial succeed sudden suffer suffering sufficient
    suit suitable sum superb surface surround surrounded surrounding survey survive suspect sustain
    sustainable swear sweep sympathy talent talented target teamwork tear technical technique temporary tend
    tension terrible terrific terrify testing therapeutic therapy therefore thick thin thorough thoroughly
    thoughtful thread threat thrill thrilling thrive tie tight tiny title tool topic touched touching tour
    trace transform transformation transition treasure treatment tremendous trend trial trick trigger trust
    twice twist typical typically ugly ultimate ultimately unbelievable uncertain understanding understood
    unexpected unforgettable unfortunately unique uniqueness unit unite unity universal unknown unlike unlock
    unusual unwavering unwind upcoming uplifting upper urge urgent usage useful useless utterly valid vast
    vehicle version versus vibe vibes vibrant victory viewpoint visible vision visual vital vivid vulnerable
    warmth warn wealth weird wellbeing wellness whenever wherever widely willing willingness wisdom wishing
    withdraw witness workshop worldwide worried worse worst worthwhile worthy wound wrap yay youth zone
    """
)


# What every terminal, file and tool answer is full of.
PROGRAMMING = _band(
    """
    arg args argument array async attribute await bash bool boolean branch bug byte bytes called cd char cli
    code command commands config console const constructor content context count debug def default delete
    description dict diff dir directory edit endpoint enum error errors exit export extends failed false file
    files filter format found functions git grep handler id implement implementation implements import imports
    index info init input install int integer interface json keys lambda len length lib lines log logs loop ls
    map max methods min mode module modules names node npm null num object output package paths pattern pip
    print prop props python query repo returns root script server shell src stderr stdin stdout str string
    strings struct sudo switch tab tail temp template tests text tmp todo token tokens tools types undefined
    updated url user users util utils val var variable void warning warnings yield
    """
)
