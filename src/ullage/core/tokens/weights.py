"""Weights of `ullage.core.tokens.estimate`, written by ``lab.bench.fit_families``."""

# fmt: off
WEIGHTS = {
    "claude-v3": (
        "000000000000030{{R300000000000000000000001E&PMrK4W06q&?0R;g9C?hB!8XhDZ5&#_lH3R?vQ!8#8E&x"
        "m}9xVUOK2Zk(F#iB65CDo?q5%I~asUkg03iSXApi;k01`e=7Yqsj04^8=02>$(914I0Q2+%10000000000000000"
        "1yBG000000001J001Tc6{`-b00000000000000C00000000005dZ)H00000000000000-"
        "bQb^r{{R30003QGB{7@-"
        "08(dVgbx70{{R30nrv8V|8LLtGQR(R^Z)>|{{R300000000000000000BM3IeXn%Dy0fiOr~m)}X8-"
        "^I7u+gEiI&3Mv;Y7AxBv_jO0rx2nbpCys#5>}bpRny_tas6f4a@urvLx|RXB2>0Jul(|DASw-"
        "Y5V7BSB_0aRr%l$DeJRT>k(79~u||Kg0>2(sE*3Q~&?~0RM`^WzGKp{{XGuh4TOaqW?|+7Xbf|0NJI${{R305>-"
        "TMb#;U9v;hDBd;kCd09H9UadRnjhyVZpIzs>eGf^2YmA_iCdH?_bA9er$AXFza0L(cq-"
        "T(kB00jU500000000000000000093|NmG3t^kYw+5iB6ZvX%Q{{R60qFMlFQ~&?~00000"
    ),
    "claude-v4.8": (
        "000000000000030000000000000000000000000003-"
        "kmXTgF)09zwR9~%H17#S2E3Ktj=3IHz?8w3CVkuyRdNC83?SU=giRY@>4A;SSf6aYXhdI0}~v;dF*04o9-"
        "IspI}02>v3CJq(=04*~P2r2~tF&L=;WdLgc00000000000000002KfL000000000+000vJ0NysP0000000000000"
        "0000000000000ssI2000000000000019bTt3}{{a60003lDEGE?d08VsYfesD4{{R30n`?q<|7yAQM#BGZ@&Ew;{"
        "{R300000000000000000F7xEl|fybzf-pVkN^MxK@$Nft>pkV=Y7h#Qvd(}gBKNJ)s$1`;@kRbUnc+nEDaZx+@?P"
        "^V32*Pc>n+aKmbY?PLCj~?s=0&wg3PCE_Z-ff)J2-"
        "<fBdg)BgYfCKCWDlky6b?sZROHUIzs4#uzlozwpS{{W!CRsR40g#T3l02=>u0ROhZ{{R30LSG`ToqlWH{{a9z{#*"
        "b6J2?O*l#GP-"
        "7XJVM8yNrq5l;_e$;WN0d;m!W5Rm`?I%7ttZh>3?>;X(=0BisN00000000000000000000|NmA1%>ah~{{R4+{{{"
        "d6HBbQm-8TST{{R3<00000"
    ),
    "gemini": (
        "i2wiq0000000030000000000000000000000000005bp;AuAdQ04M`o1^@s600IR70{{#I1ONp9APoQ#LJBS$8~`"
        "pgCL;fQD?bMjEB_}a6985yTOWldRsaA201N~G0ssjM018b(3=jqY01yHM0R#;m8vs@SLI4W@000^Q002?k0055w0"
        "00*!000tG1^^HFhp1WiBc=WT9vJ`s0FD(PFPs2`Orbjn001ybLjVvi3=bv%9{>OV008<16*j2<@Bjb+{{R4B9RLm"
        "=03R_90000k{{R30002?|0001f0093000930l>h($0000000000000000F;_dmToxTtgw7rZvX%QYybcN0HPL>Ev"
        "THC%m4rYivSD>7p@lnfwi!|zBT{=f&dL5e1sM2Hms-2zyJUMXe3I10H_t~i;t0Jw*LSCd850YkDb}-"
        "%(B?{!v6pOWoutnM05uK#X69xfdBvi0q=d8VN+B9|3{?cl9T`d(f`y(a$5i10ROta{{R300EuRLJAW$UX9)lRm(&"
        "0N0Ec*Lj$s=@O8@`>1ONa48+B4fa!efcKmY&$2VVdH3SLQDFjx~;cK`q*0000000000000000000000000|Nkc*S"
        "pY5n$L0TP000000RR91000I61OF@l00000"
    ),
    "o200k_base": (
        "F8}}l0000000030000000000000000000000000002crVKtliu00aOr8U_FW6b}{@5DF6v4gfm<G6g#TH4HHt3IH"
        "JxE*}4bK1%`z5dR|*7642zC?B*$O#m4H01ONO1po&O01Hb+5*P{q02d1b01O!<4*+5eSpWb4000*N002t=08{@Y0"
        "2%-y02p~eDF6Wf00024Y4xiB007?V90D5vGj{-"
        "s1++~7000JbK>#WM003eDfdCX7003P82|WM*{{R30{{R738~^|S01W^Z0001r{{R3000c!C0001S007<q00930`2"
        "YX_0000000000000000Dx&8j41|n=C*z*fFA$=WB>pFCCejpLTWjplmGw#yZ{doL$D<OtCvBnpEdvhi~tiWn3)~f"
        "0CaH6m;e9(eJdnZ2)6{nh%5v&d)WX0wrYP|ff>)E|I~-"
        "7!v6pOfm}*OQ*Z?2Y?NDvg#rKo0RMceiIxBW0000;5B~rFv+|fYJUNh?1KUVd?*IS*Hz5%v07^yP@&GPRhvfhOPG"
        "($F!B#JD^?d*UJ^%m!VmBlik+4tj|5pGPRN?>t3ndyUS3(T{{Qv_Z089V?00000000000000000000|J^}9e$^hN"
        "{{a7cy8r+H00000001%okpKVy00000"
    ),
    "cl100k_base": (
        "jQ{`u0000000030000000000000000000000000006G8(J7WL_01p5@9R>gZ6cH8?4h<6w4**2~G6qQ*9TY_%82}"
        "bBKP>;2F;D~u8vi9F9RON8QCYr3QvehI01*WM1^^5U019M65ETyq04EOu01+o97yxh%UH}3B001)<002V&0093^0"
        "H1&&0E~uu5hnoU00t7K1M#a57XZ@20GvPoNNsW9GS-"
        "X$I!t~4wE)pS0L0V)f*Jq~000OA0F&GQ{{R300002?3IP9t0P+8H03<N~00000LE%6f00012008U&00930{{R300"
        "000000000000000F7`JRY(|Q;H`otT@U~OY5)KLC)p!eWMn#xe*gdgzyJ#rK*KiwsD?YBfFS??mH-"
        "(gwUREN0AozHh5!Hne*h0&0MZiCoE-ooamxSzwO@Z&a~9d1|I3eznEwC(YE3&eI%fpLT5w5YViEuV0RMxmf2A1!0"
        "00130OJ4vr~hjJJqe<U1G7$ZyZ`_IO(zp909Ro8#Q-"
        "rjHU9tr9c)!jq)|tE^FsgtC;$KeZ!aMfotAO=_)7p2LH_^%FE%GRJWMPb`~UzU0BQgL00000000000000000000|"
        "Np&9^8k4N|NsC0{{R3000000008;`i~j%s00000"
    ),
}
# fmt: on
"""Of each vocabulary 512 bytes in base 85: a weight a byte, then one a pair."""
